/** What can be done with one folder of a list, and why the rest cannot. */
import {
  Copy,
  FolderOpen,
  LogOut,
  PackageX,
  Settings2,
  Trash2,
  Undo2,
  UserRoundCog,
  Users
} from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import type { MenuEntry } from '../../kit/Menu';
import { refuseFolder, type FolderDeed } from '../access';
import { explorerAt } from '../paths';
import { useSharing } from '../sharing/useSharing';
import type { Folder } from '../types';
import { useRights, useWhy } from '../useAsker';
import type { Asked } from './useDialogs';
import { useFolderVerbs } from './useFolderVerbs';

const INERT = ['delete-ongoing', 'delete-complete'];

export function useFolderMenu(ask: (asked: Asked) => void): (folder: Folder) => MenuEntry[] {
  const { t } = useTranslation();
  const host = useHost();
  const why = useWhy();
  const { hosts, asker } = useRights();
  const verbs = useFolderVerbs();
  const { leave } = useSharing();
  return folder => {
    const item = (
      key: string,
      Icon: typeof Copy,
      deed: FolderDeed,
      onSelect: () => void,
      danger = false
    ): MenuEntry => {
      const reason = why(refuseFolder(deed, folder, hosts, asker));
      return {
        key,
        text: t(`data.${key}`),
        icon: <Icon size={16} aria-hidden />,
        danger,
        onSelect,
        ...(reason ? { disabled: reason } : {})
      };
    };
    const open: MenuEntry = {
      key: 'open',
      text: t('data.open'),
      icon: <FolderOpen size={16} aria-hidden />,
      onSelect: () => host.open(explorerAt(folder.id))
    };
    if (INERT.includes(folder.status)) {
      return [];
    }
    const purge = (): void => ask({ what: 'purge', folders: [folder], done: () => undefined });
    if (folder.trashed_at) {
      return [
        open,
        item('restore', Undo2, 'restore', () => void verbs.restore([folder])),
        item('restoreAs', Undo2, 'restore', () => ask({ what: 'restore', folder })),
        item('purge', PackageX, 'purge', purge, true)
      ];
    }
    const ofProject = folder.ownership_type === 'project';
    return [
      open,
      item('change', Settings2, 'update', () => ask({ what: 'change', folder })),
      item('share', Users, ofProject ? 'share' : 'invite', () =>
        ask({ what: 'share', folder })
      ),
      item('clone', Copy, 'clone', () => ask({ what: 'clone', folder })),
      ...(asker.superadmin
        ? [item('transfer', UserRoundCog, 'transfer', () => ask({ what: 'transfer', folder }))]
        : []),
      // Who only manages it has never been let in.
      ...(folder.is_owner || ofProject || folder.access === null
        ? []
        : [item('leave', LogOut, 'leave', () => void leave(folder.id, folder.name))]),
      item('trash', Trash2, 'trash', () => void verbs.trash([folder]), true)
    ];
  };
}
