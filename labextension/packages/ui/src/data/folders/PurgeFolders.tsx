import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { TypedConfirm } from '../../kit/TypedConfirm';
import type { Folder } from '../types';
import { useFolderVerbs } from './useFolderVerbs';

/** So many names are told; of the others, how many they are. */
const NAMED = 8;

interface Props {
  folders: Folder[];
  onClose(done: boolean): void;
}

/** Asks for the name of what goes for good: of one folder, or how many they are. */
export function PurgeFolders({ folders, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const verbs = useFolderVerbs();
  const [busy, setBusy] = useState(false);
  const one = folders.length === 1 ? folders[0] : undefined;
  const word = one ? one.name : t('data.purgeWord', { count: folders.length });
  return (
    <TypedConfirm
      open
      title={
        one
          ? t('data.purgeTitle', { name: one.name })
          : t('data.purgeMany', { count: folders.length })
      }
      word={word}
      label={t('data.purgeType', { word })}
      blocked={t('data.purgeBlocked')}
      confirm={t('data.purge')}
      cancel={t('data.cancel')}
      busy={busy}
      onCancel={() => onClose(false)}
      onConfirm={() => {
        setBusy(true);
        void verbs.purge(folders).then(onClose);
      }}
    >
      <p className="bai-loss">{t('data.purgeLoss')}</p>
      {one ? null : (
        <ul className="bai-names">
          {folders.slice(0, NAMED).map(folder => (
            <li key={folder.id}>{folder.name}</li>
          ))}
          {folders.length > NAMED ? (
            <li>{t('uploads.others', { count: folders.length - NAMED })}</li>
          ) : null}
        </ul>
      )}
    </TypedConfirm>
  );
}
