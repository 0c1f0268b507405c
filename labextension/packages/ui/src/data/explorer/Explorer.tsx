import { FolderLock, FolderOpen, SearchX } from 'lucide-react';
import { useCallback, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { showAmount } from '../../amounts';
import { useHost } from '../../host';
import { Banner, EmptyState, Skeleton } from '../../kit/States';
import { DropZone } from '../../kit/DropZone';
import { LoadError } from '../../LoadError';
import { refuseFile, type FileDeed } from '../access';
import { join, nameOf } from '../paths';
import type { FileEntry, Folder } from '../types';
import { entriesOf, gatherEntries, gatherPicked, type Gathered } from '../uploads/gather';
import { useUploads } from '../uploads/useUploads';
import { useRights, useWhy } from '../useAsker';
import { mountedAt } from '../words';
import { archiveAddress, contentAddress, save, type Packing } from './addresses';
import { EntryRow, type EntryDeed } from './EntryRow';
import { EntryTable } from './EntryTable';
import { NewDirectory } from './NewDirectory';
import { PlaceDialog } from './PlaceDialog';
import { Preview } from './Preview';
import { SelectionBar } from './SelectionBar';
import { SidePanel } from './SidePanel';
import { Tasks } from './Tasks';
import { Toolbar } from './Toolbar';
import { useEntries } from './useEntries';
import { useFileVerbs } from './useFileVerbs';
import { useSelection } from './useSelection';
import { useWay } from './useWay';

interface Placing {
  how: 'move' | 'copy';
  paths: string[];
}

/** What is in one place of a folder, and all that can be done with it. */
export function Explorer({ folder }: { folder: Folder }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { hosts } = useRights();
  const why = useWhy();
  const { view, show, side, go } = useWay(folder.id);
  const entries = useEntries(folder, view);
  const items = useMemo(() => entries.items ?? [], [entries.items]);
  const verbs = useFileVerbs(folder);
  const uploads = useUploads();
  const place = view.path;
  const selection = useSelection(items, `${folder.id} ${place}`);
  const [placing, setPlacing] = useState<Placing | null>(null);
  const [making, setMaking] = useState(false);
  const refuse = (deed: FileDeed) => refuseFile(deed, folder, hosts);
  const [change, add, take, remove] = (['change', 'add', 'take', 'remove'] as const).map(deed =>
    why(refuse(deed))
  );
  // The same object as long as it says the same: rows are not drawn anew for nothing.
  const refusals = useMemo(() => ({ change, add, take, remove }), [change, add, take, remove]);

  const upload = (gathered: Gathered): void => {
    if (gathered.files.length || gathered.empty.length) {
      uploads.add({ folderId: folder.id, folder: folder.name, path: place }, gathered);
    }
  };
  const drop = (transfer: DataTransfer): void => {
    gatherEntries(entriesOf(transfer)).then(upload, () =>
      host.notify('error', t('files.dropFailed'))
    );
  };
  const download = (paths: string[], kind: Packing): void => {
    const address = archiveAddress(host, folder.id, paths, kind);
    if (address) {
      save(address);
    } else {
      host.notify('warning', t('files.tooMany'));
    }
  };
  const act = (deed: EntryDeed, entry: FileEntry): void => {
    const path = join(place, entry.name);
    if (deed === 'download') {
      if (entry.kind === 'folder') {
        download([path], 'zip');
      } else {
        save(contentAddress(host, folder.id, path));
      }
    } else if (deed === 'trash') {
      void verbs.trash([path]);
    } else if (deed === 'unpack') {
      void verbs.extract(path, place);
    } else if (deed === 'move' || deed === 'copy') {
      setPlacing({ how: deed, paths: [path] });
    }
  };
  const rename = (entry: FileEntry, name: string): Promise<boolean> =>
    verbs.rename(join(place, entry.name), join(place, name));
  const onDeed = useStable(act);
  const onRename = useStable(rename);

  const paths = selection.chosen.map(entry => join(place, entry.name));
  const bytes = selection.chosen.reduce((sum, entry) => sum + entry.size, 0);
  const beside = show !== '' || side !== null;
  if (folder.access === null) {
    return (
      <>
        <EmptyState
          icon={<FolderLock size={32} />}
          title={t('files.closed')}
          text={t('why.administers')}
        />
        <SidePanel
          folder={folder}
          side={side ?? 'details'}
          onSide={to => go({ side: to ?? '' })}
        />
      </>
    );
  }
  return (
    <div
      className="bai-explorer"
      data-beside={beside ? (show ? 'preview' : 'side') : undefined}
    >
      <div className="bai-explorer-main">
        <DropZone
          label={t('files.dropHere', { place: nameOf(place) || folder.name })}
          refusal={add ?? null}
          onDrop={drop}
        >
          <Toolbar
            folder={folder}
            view={view}
            why={refuse('add')}
            side={side}
            onGo={go}
            onNew={() => setMaking(true)}
            onPicked={files => upload(gatherPicked(files))}
          />
          {folder.status === 'delete-pending' ? (
            <Banner tone="warning" icon={<FolderLock size={18} />}>
              {t('why.inTrash')}
            </Banner>
          ) : null}
          <Tasks folderId={folder.id} onCancel={verbs.cancelTask} />
          {selection.chosen.length ? (
            <SelectionBar
              count={selection.chosen.length}
              size={bytes ? showAmount('mem', bytes, host.language) : ''}
              why={{
                take: refuse('take'),
                change: refuse('change'),
                add: refuse('add'),
                remove: refuse('remove')
              }}
              onDownload={kind => download(paths, kind)}
              onMove={() => setPlacing({ how: 'move', paths })}
              onCopy={() => setPlacing({ how: 'copy', paths })}
              onTrash={() => {
                selection.clear();
                void verbs.trash(paths);
              }}
              onClear={selection.clear}
            />
          ) : null}
          {entries.error ? (
            <LoadError
              error={entries.error}
              stale={entries.items !== undefined}
              onRetry={entries.retry}
            />
          ) : null}
          {!entries.items && !entries.error ? (
            <Skeleton rows={6} label={t('state.loading')} />
          ) : null}
          {entries.items?.length === 0 ? (
            <Nothing search={view.search} mayAdd={refuse('add') === null} />
          ) : null}
          {items.length ? (
            <EntryTable
              caption={t('files.caption', { place: nameOf(place) || folder.name })}
              entries={entries}
              view={view}
              selected={selection.names}
              onSort={(sort, descending) => go({ sort: `${descending ? '-' : ''}${sort}` })}
              onSelectAll={selection.selectAll}
              row={(entry, at) => (
                <EntryRow
                  key={entry.name}
                  folderId={folder.id}
                  place={place}
                  entry={entry}
                  at={at}
                  selected={selection.names.has(entry.name)}
                  shown={show === entry.name}
                  language={host.language}
                  mounted={mountedAt(folder, join(place, entry.name))}
                  refusals={refusals}
                  onSelect={selection.select}
                  onDeed={onDeed}
                  onRename={onRename}
                />
              )}
            />
          ) : null}
          {items.length ? (
            <p className="bai-help bai-entries-count" role="status">
              {t('files.count', { count: entries.total })}
            </p>
          ) : null}
        </DropZone>
      </div>
      {show ? (
        <Preview
          key={`${place}/${show}`}
          folder={folder}
          place={place}
          name={show}
          onClose={() => go({ show: '' })}
        />
      ) : side ? (
        <SidePanel folder={folder} side={side} onSide={to => go({ side: to ?? '' })} />
      ) : null}
      {placing ? (
        <PlaceDialog
          folder={folder}
          how={placing.how}
          paths={placing.paths}
          onClose={() => setPlacing(null)}
          onPlace={async (into, clash) => {
            selection.clear();
            const paths = await verbs.place(placing.how, placing.paths, into, clash);
            if (paths.length) {
              // What was done already is not there to be done again.
              setPlacing({ ...placing, paths });
            }
            return paths.length === 0;
          }}
        />
      ) : null}
      {making ? (
        <NewDirectory
          place={place}
          onClose={() => setMaking(false)}
          onMake={verbs.makeDirectory}
        />
      ) : null}
    </div>
  );
}

function Nothing({ search, mayAdd }: { search: string; mayAdd: boolean }): JSX.Element {
  const { t } = useTranslation();
  return search ? (
    <EmptyState
      icon={<SearchX size={32} />}
      title={t('files.nothingFound')}
      text={t('files.nothingFoundText', { search })}
    />
  ) : (
    <EmptyState
      icon={<FolderOpen size={32} />}
      title={t('files.emptyFolder')}
      text={t(mayAdd ? 'files.emptyFolderText' : 'files.emptyFolderRead')}
    />
  );
}

/** The same function for ever, which does what the latest one does. */
function useStable<Given extends unknown[], Answer>(
  deed: (...given: Given) => Answer
): (...given: Given) => Answer {
  const [latest] = useState({ deed });
  latest.deed = deed;
  return useCallback((...given: Given) => latest.deed(...given), [latest]);
}
