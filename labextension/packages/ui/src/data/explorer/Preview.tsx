/** A look at one file. What is in it is shown as text or as a picture, and never run. */
import { useQuery } from '@tanstack/react-query';
import { Download, Pencil, X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { IconButton } from '../../kit/Button';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { refuseFile } from '../access';
import { DeedButton } from '../DeedButton';
import { join } from '../paths';
import { entryQuery } from '../queries';
import type { FileEntry, Folder } from '../types';
import { useRights } from '../useAsker';
import { contentAddress, save } from './addresses';
import { EntryIcon, showSize } from './EntryRow';
import { PreviewBody } from './PreviewBody';
import { MOST_EDITED, TextEditor } from './TextEditor';
import { useReturnedFocus } from './useReturnedFocus';

interface Props {
  folder: Folder;
  place: string;
  name: string;
  onClose(): void;
}

export function Preview({ folder, place, name, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const panel = useReturnedFocus();
  const host = useHost();
  const path = join(place, name);
  const { data: entry, error, refetch } = useQuery(entryQuery(host, folder.id, path));
  const { hosts } = useRights();
  const [editing, setEditing] = useState(false);
  const take = refuseFile('take', folder, hosts);
  return (
    <section
      ref={panel}
      className="bai-card bai-side-card"
      aria-label={t('files.preview', { name })}
    >
      <header className="bai-side-head">
        {entry ? <EntryIcon entry={entry} /> : null}
        <h2>
          <bdi>{name}</bdi>
        </h2>
        <IconButton label={t('files.closePreview')} onClick={onClose}>
          <X size={18} aria-hidden />
        </IconButton>
      </header>
      {error && !entry ? <LoadError error={error} onRetry={() => void refetch()} /> : null}
      {!entry && !error ? <Skeleton rows={3} label={t('state.loading')} /> : null}
      {entry && editing ? (
        <TextEditor
          folder={folder}
          path={path}
          onClose={() => {
            setEditing(false);
            void refetch();
          }}
        />
      ) : null}
      {entry && !editing ? (
        <>
          <p className="bai-help">
            {entry.kind === 'file' ? `${showSize(entry, host.language)} · ` : ''}
            {t(`files.kind.${entry.kind}`)}
          </p>
          <div className="bai-side-deeds">
            {entry.kind === 'file' ? (
              <>
                <DeedButton
                  size="small"
                  why={take}
                  icon={<Download size={16} aria-hidden />}
                  onClick={() => save(contentAddress(host, folder.id, path))}
                >
                  {t('files.download')}
                </DeedButton>
                {isEdited(entry) ? (
                  <DeedButton
                    size="small"
                    why={take ?? refuseFile('add', folder, hosts)}
                    icon={<Pencil size={16} aria-hidden />}
                    onClick={() => setEditing(true)}
                  >
                    {t('files.edit')}
                  </DeedButton>
                ) : null}
              </>
            ) : null}
          </div>
          {take ? (
            <p className="bai-nothing">{t(`why.${take}`)}</p>
          ) : (
            <PreviewBody folderId={folder.id} path={path} entry={entry} />
          )}
        </>
      ) : null}
    </section>
  );
}

const WRITTEN =
  /\.(txt|md|rst|py|r|jl|sh|js|ts|tsx|jsx|css|html?|xml|svg|json|ya?ml|toml|ini|cfg|conf|csv|tsv|sql|tex|log|c|h|cc|cpp|hpp|rs|go|java|env)$/i;

/** What people write by hand, or what has no ending to tell. */
function isEdited({ name, size }: FileEntry): boolean {
  return size <= MOST_EDITED && (WRITTEN.test(name) || !name.replace(/^\.+/, '').includes('.'));
}
