/** The dialogs about folders, of which one is open at a time. */
import { useCallback, useState, type ReactNode } from 'react';
import type { Folder } from '../types';
import { ChangeFolder } from './ChangeFolder';
import { CloneFolder } from './CloneFolder';
import { CreateFolder } from './CreateFolder';
import { PurgeFolders } from './PurgeFolders';
import { RestoreFolder } from './RestoreFolder';
import { ShareFolder } from './ShareFolder';
import { TransferFolder } from './TransferFolder';

export type Asked =
  | { what: 'create' }
  | { what: 'change' | 'clone' | 'transfer' | 'restore' | 'share'; folder: Folder }
  | { what: 'purge'; folders: Folder[]; done(well: boolean): void };

export function useDialogs(): { ask(asked: Asked): void; dialog: ReactNode } {
  const [asked, ask] = useState<Asked | null>(null);
  const close = useCallback(() => ask(null), []);
  return { ask, dialog: asked ? <Dialog asked={asked} onClose={close} /> : null };
}

function Dialog({ asked, onClose }: { asked: Asked; onClose(): void }): JSX.Element {
  switch (asked.what) {
    case 'create':
      return <CreateFolder onClose={onClose} />;
    case 'purge':
      return (
        <PurgeFolders
          folders={asked.folders}
          onClose={well => {
            asked.done(well);
            onClose();
          }}
        />
      );
    default:
      return <AboutOne what={asked.what} folder={asked.folder} onClose={onClose} />;
  }
}

const DIALOGS = {
  change: ChangeFolder,
  clone: CloneFolder,
  transfer: TransferFolder,
  restore: RestoreFolder,
  share: ShareFolder
};

interface AboutOneProps {
  what: keyof typeof DIALOGS;
  folder: Folder;
  onClose(): void;
}

function AboutOne({ what, folder, onClose }: AboutOneProps): JSX.Element {
  const Shown = DIALOGS[what];
  return <Shown folder={folder} onClose={onClose} />;
}
