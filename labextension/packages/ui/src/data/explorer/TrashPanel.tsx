/** What was thrown away in a folder: put back, or gone for good. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Trash2, Undo2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Button, IconButton } from '../../kit/Button';
import { ConfirmDialog } from '../../kit/ConfirmDialog';
import { RelativeTime } from '../../kit/RelativeTime';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { refuseFile } from '../access';
import { DeedButton } from '../DeedButton';
import { trashedQuery } from '../queries';
import type { Folder, TrashedFile } from '../types';
import { useRights } from '../useAsker';
import { EntryIcon, showSize } from './EntryRow';
import { useFileVerbs } from './useFileVerbs';

export function TrashPanel({ folder }: { folder: Folder }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { hosts } = useRights();
  const verbs = useFileVerbs(folder);
  const query = useInfiniteQuery(trashedQuery(host, folder.id));
  // Null: nobody is asked; else what is to go, all of it if nothing is named.
  const [going, setGoing] = useState<{ ids: string[] | null; text: string } | null>(null);
  const items = query.data?.pages.flatMap(page => page.items);
  if (!items) {
    return query.error ? (
      <LoadError error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <Skeleton rows={3} label={t('state.loading')} />
    );
  }
  if (items.length === 0) {
    return <p className="bai-nothing">{t('files.trashEmpty')}</p>;
  }
  const refused = refuseFile('remove', folder, hosts);
  const ask = ({ id, path }: TrashedFile): void =>
    setGoing({ ids: [id], text: t('files.goOne', { name: path }) });
  return (
    <>
      <p className="bai-help">{t('files.trashText')}</p>
      <ul className="bai-trashed">
        {items.map(item => (
          <li key={item.id}>
            <EntryIcon entry={{ kind: item.kind, name: item.path }} />
            <span className="bai-trashed-name">
              <bdi>{item.path}</bdi>
              <span className="bai-help">
                {item.kind === 'file' ? `${showSize(item, host.language)} · ` : ''}
                {item.thrown_by ? `${item.thrown_by} · ` : ''}
                <RelativeTime iso={item.thrown_at} language={host.language} />
              </span>
            </span>
            {refused ? null : (
              <>
                <IconButton
                  label={t('files.restoreOne', { name: item.path })}
                  onClick={() => void verbs.restore([item.id])}
                >
                  <Undo2 size={16} aria-hidden />
                </IconButton>
                <IconButton
                  label={t('files.removeOne', { name: item.path })}
                  onClick={() => ask(item)}
                >
                  <Trash2 size={16} aria-hidden />
                </IconButton>
              </>
            )}
          </li>
        ))}
      </ul>
      <div className="bai-side-deeds">
        {query.hasNextPage ? (
          <Button
            size="small"
            busy={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          >
            {t('files.more')}
          </Button>
        ) : null}
        <DeedButton
          size="small"
          why={refused}
          icon={<Trash2 size={16} aria-hidden />}
          onClick={() => setGoing({ ids: null, text: t('files.goAll') })}
        >
          {t('files.emptyTrash')}
        </DeedButton>
      </div>
      <ConfirmDialog
        open={going !== null}
        title={t('files.goTitle')}
        confirm={t('files.removeForGood')}
        cancel={t('data.cancel')}
        onCancel={() => setGoing(null)}
        onConfirm={() => {
          const ids = going?.ids ?? null;
          setGoing(null);
          void verbs.emptyTrash(ids);
        }}
      >
        <p>{going?.text}</p>
        <p className="bai-loss">{t('files.goLoss')}</p>
      </ConfirmDialog>
    </>
  );
}
