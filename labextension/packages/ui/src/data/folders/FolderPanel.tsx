/** One's folders in a narrow panel, such as JupyterLab's sidebar. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { EllipsisVertical, Folder as FolderIcon, FolderPlus } from 'lucide-react';
import { useDeferredValue, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { showAmount } from '../../amounts';
import { useHost } from '../../host';
import { Button, IconButton } from '../../kit/Button';
import { MenuButton } from '../../kit/Menu';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { PageLink } from '../../PageLink';
import { usePolling } from '../../stream';
import { dataKeys } from '../keys';
import { explorerAt } from '../paths';
import { Invitations } from '../sharing/Invitations';
import type { Folder } from '../types';
import { mountedAt, whose } from '../words';
import { loadFolders } from './load';
import { useDialogs } from './useDialogs';
import { useFolderMenu } from './useFolderMenu';

const ROWS = 50;

export function FolderPanel(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const polling = usePolling();
  const { ask, dialog } = useDialogs();
  const menuOf = useFolderMenu(ask);
  const [text, setText] = useState('');
  const search = useDeferredValue(text.trim());
  const query = useInfiniteQuery({
    queryKey: [...dataKeys.folders, 'panel', search],
    queryFn: ({ signal, pageParam }) =>
      loadFolders(
        host,
        'active',
        { search, filters: {}, order: 'name', after: pageParam, limit: ROWS },
        signal
      ),
    initialPageParam: '',
    getNextPageParam: page => page.next,
    refetchInterval: polling,
    enabled: host.visible
  });
  const folders = query.data?.pages.flatMap(page => page.items);
  return (
    <div className="bai-folder-panel">
      <div className="bai-folder-panel-bar">
        <span className="bai-input">
          <input
            type="search"
            aria-label={t('data.search')}
            placeholder={t('data.search')}
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={event => setText(event.target.value)}
          />
        </span>
        <IconButton label={t('data.new')} onClick={() => ask({ what: 'create' })}>
          <FolderPlus size={18} aria-hidden />
        </IconButton>
      </div>
      <Invitations />
      {query.error ? (
        <LoadError
          error={query.error}
          stale={folders !== undefined}
          onRetry={() => void query.refetch()}
        />
      ) : null}
      {!folders && !query.error ? <Skeleton rows={4} label={t('state.loading')} /> : null}
      {folders?.length === 0 ? (
        <p className="bai-nothing">{t(search ? 'list.noMatchTitle' : 'data.emptyText')}</p>
      ) : null}
      <ul className="bai-folder-rows" aria-label={t('data.caption')}>
        {folders?.map(folder => (
          <Row key={folder.id} folder={folder} menu={menuOf(folder)} />
        ))}
      </ul>
      {query.hasNextPage ? (
        <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          {t('files.more')}
        </Button>
      ) : null}
      {dialog}
    </div>
  );
}

interface RowProps {
  folder: Folder;
  menu: Parameters<typeof MenuButton>[0]['entries'];
}

function Row({ folder, menu }: RowProps): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const size = folder.used_bytes ? showAmount('mem', folder.used_bytes, language) : '0 B';
  return (
    <li
      draggable
      onDragStart={event => event.dataTransfer.setData('text/plain', mountedAt(folder, ''))}
    >
      <FolderIcon size={16} aria-hidden />
      <span className="bai-folder-row-words">
        <PageLink to={explorerAt(folder.id)}>{folder.name}</PageLink>
        <span className="bai-help">{`${whose(folder, t)} · ${size}`}</span>
      </span>
      <MenuButton
        label={t('files.actionsOf', { name: folder.name })}
        icon={<EllipsisVertical size={16} aria-hidden />}
        entries={menu}
      />
    </li>
  );
}
