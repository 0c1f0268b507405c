/** The folders of a session: found by name, chosen, and put where they are wanted. */
import type { Folder, Mount } from '@backendai/api';
import { X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Field } from '../kit/Field';
import { Switch } from '../kit/Switch';
import { FolderResults } from './FolderResults';
import { appearsAt, changeMount, chooseFolder, type ChosenMount } from './mounts';
import { useChosenFolders, useFolders, type FindFolders } from './useFolders';

const SEARCH = 'backendai-folders';

interface Props {
  mounts: ChosenMount[];
  /** The project the session is going to belong to. */
  project: string;
  find: FindFolders;
  /** What the session would mount without being asked to. */
  automatic: Mount[];
  onChange(change: (old: ChosenMount[]) => ChosenMount[]): void;
}

export function FolderChoice(props: Props): JSX.Element {
  const { mounts, project, find, automatic, onChange } = props;
  const { t } = useTranslation();
  const [search, setSearch] = useState('');
  const list = useFolders(find, search);
  const { lookUp, remember } = useChosenFolders(find, mounts);
  const isChosen = (folder: Folder): boolean =>
    mounts.some(each => each.folder === folder.id || lookUp(each.folder)?.id === folder.id);
  const toggle = (folder: Folder): void => {
    remember(folder);
    const chosen = mounts.filter(
      each => each.folder === folder.id || lookUp(each.folder)?.id === folder.id
    );
    onChange(old =>
      chosen.length ? old.filter(each => !chosen.includes(each)) : chooseFolder(old, folder)
    );
  };
  return (
    <fieldset className="bai-group">
      <legend>{t('folders.title')}</legend>
      <p className="bai-help">{t('folders.text')}</p>
      <div className="bai-field">
        <label htmlFor={SEARCH}>{t('folders.find')}</label>
        <span className="bai-input">
          <input
            id={SEARCH}
            type="search"
            // No field of the form around it: Enter here does not start the session.
            form="backendai-none"
            autoComplete="off"
            spellCheck={false}
            value={search}
            onChange={event => setSearch(event.target.value)}
          />
        </span>
      </div>
      <FolderResults {...{ list, search, project, isChosen }} onToggle={toggle} />
      {mounts.length ? (
        <ul className="bai-mounts" aria-label={t('folders.chosen')}>
          {mounts.map((mount, at) => (
            <ChosenFolder
              key={`${at} ${mount.folder}`}
              id={`backendai-mount-${at}`}
              mount={mount}
              folder={lookUp(mount.folder)}
              onChange={change => onChange(old => changeMount(old, at, change))}
              onRemove={() => {
                onChange(old => old.filter(each => each !== mount));
                document.getElementById(SEARCH)?.focus(); // the button is gone
              }}
            />
          ))}
        </ul>
      ) : null}
      <Automatic mounts={automatic} />
    </fieldset>
  );
}

interface ChosenProps {
  id: string;
  mount: ChosenMount;
  folder: Folder | undefined;
  onChange(change: Partial<ChosenMount>): void;
  onRemove(): void;
}

function ChosenFolder({ id, mount, folder, onChange, onRemove }: ChosenProps): JSX.Element {
  const { t } = useTranslation();
  const name = folder?.name ?? mount.folder;
  const shown = mount.subpath ? `${name}/${mount.subpath}` : name;
  return (
    <li>
      <fieldset className="bai-mount">
        <legend>{shown}</legend>
        <Field
          id={id}
          label={t('folders.target')}
          optional={t('launch.optional')}
          placeholder={name}
          help={t('folders.appears', { path: appearsAt(mount.target, name) })}
          value={mount.target}
          onChange={target => onChange({ target })}
        />
        <Field
          id={`${id}-part`}
          label={t('folders.part')}
          optional={t('launch.optional')}
          placeholder={t('folders.partExample')}
          help={t('folders.partHelp')}
          value={mount.subpath}
          onChange={subpath => onChange({ subpath })}
        />
        {folder?.access === 'ro' ? (
          <span className="bai-help">{t('folders.onlyRead')}</span>
        ) : (
          <Switch
            label={t('folders.readOnly')}
            checked={mount.permission === 'ro'}
            onChange={only => onChange({ permission: only ? 'ro' : null })}
          />
        )}
        <button
          type="button"
          className="bai-remove"
          aria-label={t('folders.remove', { name: shown })}
          title={t('folders.remove', { name: shown })}
          onClick={onRemove}
        >
          <X size={16} aria-hidden />
        </button>
      </fieldset>
    </li>
  );
}

function Automatic({ mounts }: { mounts: Mount[] }): JSX.Element | null {
  const { t } = useTranslation();
  if (mounts.length === 0) {
    return null;
  }
  return (
    <div className="bai-help">
      <span id="backendai-always">{t('folders.always')}</span>
      <ul className="bai-always" aria-labelledby="backendai-always">
        {mounts.map(({ folder_name: name, target, permission }) => (
          <li key={target}>
            <strong>{name}</strong> <code>{target}</code> · {t(`folders.${permission}`)}
          </li>
        ))}
      </ul>
    </div>
  );
}
