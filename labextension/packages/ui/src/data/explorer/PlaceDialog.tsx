/** Where files are to be moved or copied to, chosen among the folders that are there. */
import { unwrap } from '@backendai/api';
import { useQueries } from '@tanstack/react-query';
import { Folder as FolderIcon } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { FormDialog } from '../../kit/FormDialog';
import { SelectField } from '../../kit/SelectField';
import { Tree, type TreeNode } from '../../kit/Tree';
import { LoadError } from '../../LoadError';
import { dataKeys } from '../keys';
import { isWithin, join, parentOf } from '../paths';
import type { Clash, Folder } from '../types';

/** So many folders of one are shown. */
const MOST = 500;
/** The root's key in the tree: no path. */
const ROOT = '';

interface Props {
  folder: Folder;
  how: 'move' | 'copy';
  paths: string[];
  onClose(): void;
  onPlace(into: string, clash: Clash): Promise<boolean>;
}

export function PlaceDialog({ folder, how, paths, onClose, onPlace }: Props): JSX.Element {
  const { t } = useTranslation();
  const from = parentOf(paths[0] ?? '');
  const [into, setInto] = useState(from);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set([ROOT, ...above(from)]));
  const [clash, setClash] = useState<Clash>('fail');
  const [busy, setBusy] = useState(false);
  const { find, error, retry } = useFolders(folder, [...open]);
  const build = (path: string): TreeNode[] | null =>
    find(path)?.map(name => {
      const key = join(path, name);
      return {
        key,
        text: name,
        icon: <FolderIcon size={16} aria-hidden />,
        children: build(key)
      };
    }) ?? null;
  const toggle = (key: string): void =>
    setOpen(old => {
      const next = new Set(old);
      if (!next.delete(key)) {
        next.add(key);
      }
      return next;
    });
  // A folder can go neither into itself, nor where it is already.
  const inside = paths.some(path => isWithin(into, path));
  const blocked = inside
    ? t('files.intoItself')
    : how === 'move' && into === from
      ? t('files.isThere')
      : undefined;
  return (
    <FormDialog
      open
      title={t(how === 'move' ? 'files.moveTitle' : 'files.copyTitle', { count: paths.length })}
      submit={t(`files.${how}`)}
      cancel={t('data.cancel')}
      busy={busy}
      blocked={blocked}
      size="medium"
      onClose={onClose}
      onSubmit={() => {
        setBusy(true);
        void onPlace(into, clash).then(done => {
          setBusy(false);
          if (done) {
            onClose();
          }
        });
      }}
    >
      {error ? <LoadError error={error} onRetry={retry} /> : null}
      <Tree
        label={t('files.places')}
        loading={t('state.loading')}
        roots={[
          {
            key: ROOT,
            text: folder.name,
            icon: <FolderIcon size={16} aria-hidden />,
            children: build(ROOT)
          }
        ]}
        open={open}
        chosen={into}
        onToggle={toggle}
        onChoose={setInto}
      />
      <SelectField
        label={t('files.clash')}
        value={clash}
        options={(['fail', 'rename', 'replace'] as const).map(value => ({
          value,
          text: t(`files.clashes.${value}`)
        }))}
        onChange={value => setClash(value as Clash)}
      />
    </FormDialog>
  );
}

function above(path: string): string[] {
  return path ? [path, ...above(parentOf(path))] : [];
}

interface Found {
  /** The names of the folders in a place, as far as they are known. */
  find(place: string): string[] | undefined;
  /** Why they are not. */
  error: Error | undefined;
  retry(): void;
}

function useFolders(folder: Folder, places: string[]): Found {
  const { api } = useHost();
  const known = useQueries({
    queries: places.map(path => {
      const query = { path, sort: 'kind' as const, descending: false, search: '', limit: MOST };
      return {
        queryKey: dataKeys.entries(folder.id, { path, only: 'folders' }),
        queryFn: () =>
          unwrap(
            api.GET('/api/folders/{folder_id}/entries', {
              params: { path: { folder_id: folder.id }, query }
            })
          )
      };
    })
  });
  const failed = known.filter(query => query.error && !query.data);
  return {
    find: place =>
      known[places.indexOf(place)]?.data?.items
        .filter(entry => entry.kind === 'folder')
        .map(entry => entry.name),
    error: failed[0]?.error ?? undefined,
    retry: () => failed.forEach(query => void query.refetch())
  };
}
