/** One file or folder in a folder: what it is, and what can be done with it. */
import type { TFunction } from 'i18next';
import {
  Copy,
  Download,
  File as FileIcon,
  FileArchive,
  FileImage,
  FileSpreadsheet,
  FileText,
  Folder as FolderIcon,
  FolderInput,
  Link2,
  NotebookText,
  PackageOpen,
  Pencil,
  Trash2
} from 'lucide-react';
import { memo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { showAmount } from '../../amounts';
import { Checkbox } from '../../kit/Checkbox';
import { RowMenu, type MenuEntry } from '../../kit/Menu';
import { RelativeTime } from '../../kit/RelativeTime';
import { PageLink } from '../../PageLink';
import { ago } from '../../times';
import { explorerAt, join } from '../paths';
import type { FileEntry } from '../types';
import { isArchive, kindOf } from './kinds';
import { NameField } from './NameField';

export type EntryDeed = 'open' | 'download' | 'move' | 'copy' | 'unpack' | 'trash';

interface Props {
  folderId: string;
  /** The place that the entry lies in. */
  place: string;
  entry: FileEntry;
  /** Its number in the list. */
  at: number;
  selected: boolean;
  shown: boolean;
  language: string;
  /** Where sessions have the file, for who drags it into a notebook. */
  mounted: string;
  /** Why something is not possible here; undefined where it is. */
  refusals: Partial<Record<'change' | 'add' | 'take' | 'remove', string | undefined>>;
  onSelect(name: string, at: number, selected: boolean, range: boolean): void;
  onDeed(deed: EntryDeed, entry: FileEntry): void;
  onRename(entry: FileEntry, name: string): Promise<boolean>;
}

export const EntryRow = memo(function EntryRow(props: Props): JSX.Element {
  const { folderId, place, entry, at, selected, language, onSelect, onRename } = props;
  const { t } = useTranslation();
  const [renaming, setRenaming] = useState(false);
  const path = join(place, entry.name);
  const isFolder = entry.kind === 'folder';
  return (
    <tr
      aria-rowindex={at + 2}
      aria-selected={selected}
      data-shown={props.shown ? '' : undefined}
      draggable={!renaming}
      onDragStart={event => event.dataTransfer.setData('text/plain', props.mounted)}
    >
      <td
        data-column="select"
        // What is held down is told by the click, and not by the change.
        onClickCapture={event => {
          if (event.shiftKey) {
            event.preventDefault();
            onSelect(entry.name, at, !selected, true);
          }
        }}
      >
        <Checkbox
          quiet
          label={t('files.select', { name: entry.name })}
          checked={selected}
          onChange={checked => onSelect(entry.name, at, checked, false)}
        />
      </td>
      <th scope="row" data-column="name">
        <EntryIcon entry={entry} />
        {renaming ? (
          <NameField
            label={t('files.newName', { name: entry.name })}
            initial={entry.name}
            onCancel={() => setRenaming(false)}
            onDone={async name => {
              if (name === entry.name || (await onRename(entry, name))) {
                setRenaming(false);
              }
            }}
          />
        ) : (
          <span className="bai-entry-name">
            <PageLink
              to={
                isFolder ? explorerAt(folderId, path) : explorerAt(folderId, place, entry.name)
              }
            >
              {/* Names may be of any script: theirs stays theirs. */}
              <bdi>{entry.name}</bdi>
            </PageLink>
            <span className="bai-entry-more bai-help" aria-hidden>
              {isFolder ? '' : `${showSize(entry, language)} · `}
              {ago(entry.modified, Date.now(), language)}
            </span>
          </span>
        )}
      </th>
      <td data-column="size">{isFolder ? '' : showSize(entry, language)}</td>
      <td data-column="modified">
        <RelativeTime iso={entry.modified} language={language} />
      </td>
      <td data-column="actions">
        <RowMenu
          label={t('files.actionsOf', { name: entry.name })}
          entries={() => menuOf(props, t, () => setRenaming(true))}
        />
      </td>
    </tr>
  );
});

export function showSize({ size }: { size: number }, language: string): string {
  return size === 0 ? '0 B' : showAmount('mem', size, language);
}

function menuOf(
  { entry, refusals, onDeed }: Props,
  t: TFunction,
  rename: () => void
): MenuEntry[] {
  const item = (
    key: EntryDeed | 'rename',
    Icon: typeof Copy,
    refusal: string | undefined,
    more: Partial<MenuEntry> = {}
  ): MenuEntry => ({
    key,
    text: t(`files.${key}`),
    icon: <Icon size={16} aria-hidden />,
    onSelect: () => (key === 'rename' ? rename() : onDeed(key, entry)),
    ...(refusal ? { disabled: refusal } : {}),
    ...more
  });
  const taken = entry.kind === 'link' || entry.kind === 'other' ? t('why.link') : refusals.take;
  return [
    item('download', Download, taken),
    item('rename', Pencil, refusals.change),
    item('move', FolderInput, refusals.change),
    item('copy', Copy, refusals.add),
    ...(entry.kind === 'file' && isArchive(entry.name)
      ? [item('unpack', PackageOpen, refusals.add)]
      : []),
    item('trash', Trash2, refusals.remove, { danger: true })
  ];
}

const ICONS = {
  image: FileImage,
  notebook: NotebookText,
  table: FileSpreadsheet,
  archive: FileArchive,
  text: FileText
};

export function EntryIcon({ entry }: { entry: Pick<FileEntry, 'kind' | 'name'> }): JSX.Element {
  const { t } = useTranslation();
  const { kind, name } = entry;
  const Icon =
    kind === 'folder'
      ? FolderIcon
      : kind === 'link'
        ? Link2
        : kind === 'file'
          ? ICONS[kindOf(name)]
          : FileIcon;
  return (
    <span className="bai-entry-icon" data-kind={kind}>
      <Icon size={18} aria-hidden />
      <span className="bai-hidden">{t(`files.kind.${kind}`)}</span>
    </span>
  );
}
