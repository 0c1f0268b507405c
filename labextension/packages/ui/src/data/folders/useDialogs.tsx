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
import { UploadInto } from './UploadInto';

export type Asked =
  | { what: 'create' | 'upload' }
  | { what: 'change' | 'clone' | 'transfer' | 'restore' | 'share'; folder: Folder }
  | { what: 'purge'; folders: Folder[]; done(well: boolean): void };

export function useDialogs(): { ask(asked: Asked): void; dialog: ReactNode } {
  const [asked, ask] = useState<Asked | null>(null);
  const close = useCallback(() => ask(null), []);
  const create = useCallback(() => ask({ what: 'create' }), []);
  return {
    ask,
    dialog: asked ? <Dialog asked={asked} onNew={create} onClose={close} /> : null
  };
}

interface DialogProps {
  asked: Asked;
  onNew(): void;
  onClose(): void;
}

function Dialog({ asked, onNew, onClose }: DialogProps): JSX.Element {
  switch (asked.what) {
    case 'create':
      return <CreateFolder onClose={onClose} />;
    case 'upload':
      return <UploadInto onNew={onNew} onClose={onClose} />;
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
