/** All folders that one has, and what others share. */
import {
  EllipsisVertical,
  FolderOpen,
  FolderPlus,
  PackageX,
  Trash2,
  Undo2
} from 'lucide-react';
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../../address';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { MenuButton } from '../../kit/Menu';
import { Segmented } from '../../kit/Segmented';
import { Tabs } from '../../kit/Tabs';
import { NounList, type BulkAction, type ListOf } from '../../lists';
import { PageHeading } from '../../PageHeading';
import { useLooksOnly } from '../../pages/useLooksOnly';
import { StreamIndicator } from '../../sessions/StreamIndicator';
import { refuseFolder } from '../access';
import { Tasks } from '../explorer/Tasks';
import { dataKeys } from '../keys';
import { Invitations } from '../sharing/Invitations';
import type { Folder } from '../types';
import { useRights } from '../useAsker';
import { folderColumns } from './columns';
import { AUTOMATIC, loadFolders, type Shelf } from './load';
import { StorageStatus } from './StorageStatus';
import { useDialogs, type Asked } from './useDialogs';
import { useFolderMenu } from './useFolderMenu';
import { FOLDER_LIST, useFolderVerbs } from './useFolderVerbs';

const MODES = ['', 'general', 'data', 'model', AUTOMATIC];

export function FoldersPage(): JSX.Element {
  const { t } = useTranslation();
  const { ask, dialog } = useDialogs();
  const verbs = useFolderVerbs();
  const looksOnly = useLooksOnly();
  const [address, setAddress] = useAddress();
  const shelf: Shelf = address.get('tab') === 'trash' ? 'trash' : 'active';
  const choose = (tab: Shelf): void =>
    setAddress(tab === 'trash' ? { tab } : new URLSearchParams());
  const opensWith = address.has('new') ? 'create' : address.has('upload') ? 'upload' : null;
  useEffect(() => {
    // The page was opened for that; reloading it later asks for nothing.
    if (opensWith) {
      ask({ what: opensWith });
      setAddress(new URLSearchParams(), { replace: true });
    }
  }, [opensWith, ask, setAddress]);
  return (
    <>
      <PageHeading title={t('data.title')} beside={<StreamIndicator />}>
        {looksOnly ? null : (
          <Button
            kind="primary"
            icon={<FolderPlus size={18} aria-hidden />}
            onClick={() => ask({ what: 'create' })}
          >
            {t('data.new')}
          </Button>
        )}
      </PageHeading>
      <Invitations />
      <StorageStatus />
      <Tasks folderId={null} onCancel={verbs.cancelTask} />
      <Tabs
        label={t('data.title')}
        value={shelf}
        tabs={[
          { key: 'active', text: t('data.tab.active') },
          { key: 'trash', text: t('data.tab.trash') }
        ]}
        onChange={tab => choose(tab)}
      >
        <FolderList key={shelf} shelf={shelf} ask={ask} />
      </Tabs>
      {dialog}
    </>
  );
}

function FolderList({ shelf, ask }: { shelf: Shelf; ask(asked: Asked): void }): JSX.Element {
  const list = useFolderList(shelf, ask);
  const { t } = useTranslation();
  const [address, setAddress] = useAddress();
  const mode = address.get('mode') ?? '';
  return (
    <NounList
      list={list}
      beside={
        shelf === 'active' ? (
          <Segmented
            label={t('data.usageMode')}
            value={MODES.includes(mode) ? mode : ''}
            options={MODES.map(value => ({ value, text: t(`data.mode.${value || 'all'}`) }))}
            onChange={chosen =>
              setAddress(old => {
                const next = new URLSearchParams(old);
                next.delete('after');
                next.set('mode', chosen);
                if (chosen === '') {
                  next.delete('mode');
                }
                return next;
              })
            }
          />
        ) : null
      }
    />
  );
}

function useFolderList(shelf: Shelf, ask: (asked: Asked) => void): ListOf<Folder> {
  const { t } = useTranslation();
  const host = useHost();
  const { hosts, asker } = useRights();
  const verbs = useFolderVerbs();
  const menuOf = useFolderMenu(ask);
  const looksOnly = useLooksOnly();
  const trash = shelf === 'trash';
  const may =
    (deed: 'trash' | 'restore' | 'purge') =>
    (folder: Folder): boolean =>
      refuseFolder(deed, folder, hosts, asker) === null;
  const recoverable = (folder: Folder): boolean => folder.status === 'delete-pending';
  const bulk: BulkAction<Folder>[] = trash
    ? [
        {
          key: 'restore',
          text: t('data.restore'),
          icon: <Undo2 size={16} aria-hidden />,
          admits: folder => recoverable(folder) && may('restore')(folder),
          why: t('data.noneRestored'),
          run: verbs.restore
        },
        {
          key: 'purge',
          text: t('data.purge'),
          icon: <PackageX size={16} aria-hidden />,
          danger: true,
          admits: folder => folder.status !== 'delete-ongoing' && may('purge')(folder),
          why: t('data.nonePurged'),
          run: folders => new Promise<boolean>(done => ask({ what: 'purge', folders, done }))
        }
      ]
    : [
        {
          key: 'trash',
          text: t('data.trash'),
          icon: <Trash2 size={16} aria-hidden />,
          admits: may('trash'),
          why: t('data.noneTrashed'),
          run: verbs.trash
        }
      ];
  return {
    name: trash ? 'folders-trash' : FOLDER_LIST,
    caption: t(trash ? 'data.captionTrash' : 'data.caption'),
    columns: folderColumns(t, host.language, trash),
    filters: [
      { key: 'mode', title: t('data.usageMode'), outside: true },
      {
        key: 'ownership_type',
        title: t('data.owner'),
        options: ['user', 'project'].map(value => ({ value, text: t(`data.to.${value}`) }))
      },
      ...(hosts && hosts.length > 1
        ? [
            {
              key: 'host',
              title: t('data.host'),
              options: hosts.map(({ name }) => ({ value: name, text: name }))
            }
          ]
        : []),
      ...(asker.administers ? [{ key: 'user', title: t('data.user') }] : [])
    ],
    searches: t('data.search'),
    order: 'name',
    load: (view, signal) => loadFolders(host, shelf, view, signal),
    rowKey: folder => folder.id,
    rowName: folder => folder.name,
    dimmed: folder => folder.access === null && !trash,
    actions: folder => {
      const entries = looksOnly ? [] : menuOf(folder);
      return entries.length ? (
        <MenuButton
          label={t('files.actionsOf', { name: folder.name })}
          icon={<EllipsisVertical size={16} aria-hidden />}
          entries={entries}
        />
      ) : null;
    },
    ...(looksOnly ? {} : { bulk }),
    queryKey: view => [...dataKeys.folders, shelf, view],
    followed: true,
    empty: trash
      ? {
          icon: <Trash2 size={32} />,
          title: t('data.emptyTrashTitle'),
          text: t('data.emptyTrashText')
        }
      : {
          icon: <FolderOpen size={32} />,
          title: t('data.emptyTitle'),
          text: t('data.emptyText'),
          action: looksOnly ? null : (
            <Button kind="primary" onClick={() => ask({ what: 'create' })}>
              {t('data.new')}
            </Button>
          )
        }
  };
}
