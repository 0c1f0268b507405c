/** Where one is in a folder, and what can be brought there. */
import { FileUp, FolderPlus, FolderUp, Info, Search, Upload } from 'lucide-react';
import { useEffect, useId, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { IconButton } from '../../kit/Button';
import { MenuButton } from '../../kit/Menu';
import type { Reason } from '../access';
import { DeedButton } from '../DeedButton';
import type { EntriesView } from '../queries';
import type { Folder } from '../types';
import { Breadcrumbs } from './Breadcrumbs';
import type { Side } from './SidePanel';
import type { Way } from './useWay';

const TYPING = 300;

interface Props {
  folder: Folder;
  view: EntriesView;
  /** Why nothing can be brought here; null where it can. */
  why: Reason | null;
  side: Side | null;
  onGo: Way['go'];
  onNew(): void;
  onPicked(files: FileList): void;
}

export function Toolbar({
  folder,
  view,
  why,
  side,
  onGo,
  onNew,
  onPicked
}: Props): JSX.Element {
  const { t } = useTranslation();
  return (
    <div className="bai-explorer-bar">
      <Breadcrumbs folder={folder} path={view.path} />
      <div className="bai-explorer-tools">
        <SearchField
          key={view.path}
          initial={view.search}
          onSearch={search => onGo({ search })}
        />
        <DeedButton why={why} icon={<FolderPlus size={16} aria-hidden />} onClick={onNew}>
          {t('files.newFolder')}
        </DeedButton>
        <UploadButton why={why} onPicked={onPicked} />
        <IconButton
          label={t(side ? 'files.closeSide' : 'files.openSide')}
          aria-expanded={side !== null}
          onClick={() => onGo({ side: side ? '' : 'details', show: '' })}
        >
          <Info size={18} aria-hidden />
        </IconButton>
      </div>
    </div>
  );
}

function SearchField({
  initial,
  onSearch
}: {
  initial: string;
  onSearch(search: string): void;
}): JSX.Element {
  const { t } = useTranslation();
  const id = useId();
  const [text, setText] = useState(initial);
  const told = useRef(initial);
  const tell = useRef(onSearch);
  useEffect(() => {
    tell.current = onSearch;
  });
  useEffect(() => {
    if (text === told.current) {
      return undefined;
    }
    const timer = setTimeout(() => {
      told.current = text;
      tell.current(text);
    }, TYPING);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <span className="bai-search">
      <label htmlFor={id} className="bai-hidden">
        {t('files.search')}
      </label>
      <Search size={16} aria-hidden />
      <input
        id={id}
        type="search"
        autoComplete="off"
        spellCheck={false}
        placeholder={t('files.search')}
        value={text}
        onChange={event => setText(event.target.value)}
      />
    </span>
  );
}

function UploadButton({
  why,
  onPicked
}: {
  why: Reason | null;
  onPicked(files: FileList): void;
}): JSX.Element {
  const { t } = useTranslation();
  const files = useRef<HTMLInputElement>(null);
  const whole = useRef<HTMLInputElement>(null);
  useEffect(() => {
    whole.current?.setAttribute('webkitdirectory', '');
  }, []);
  if (why) {
    return (
      <DeedButton why={why} icon={<Upload size={16} aria-hidden />} onClick={noop}>
        {t('files.upload')}
      </DeedButton>
    );
  }
  return (
    <span className="bai-upload-button">
      <MenuButton
        label={t('files.upload')}
        text={t('files.upload')}
        icon={<Upload size={16} aria-hidden />}
        entries={[
          {
            key: 'files',
            text: t('files.uploadFiles'),
            icon: <FileUp size={16} aria-hidden />,
            onSelect: () => files.current?.click()
          },
          {
            key: 'folder',
            text: t('files.uploadFolder'),
            icon: <FolderUp size={16} aria-hidden />,
            onSelect: () => whole.current?.click()
          }
        ]}
      />
      {[files, whole].map((input, at) => (
        <input
          key={at}
          ref={input}
          type="file"
          multiple
          hidden
          data-picks={at === 0 ? 'files' : 'folder'}
          aria-label={t(at === 0 ? 'files.uploadFiles' : 'files.uploadFolder')}
          onChange={event => {
            if (event.target.files) {
              onPicked(event.target.files);
            }
            event.target.value = ''; // the same may be picked again
          }}
        />
      ))}
    </span>
  );
}

const noop = (): void => undefined;
