/** What somebody may do with a folder and in it, and what keeps them from the rest. */
import type { Folder, StorageHost } from './types';

export type FileDeed = 'read' | 'take' | 'change' | 'add' | 'remove';
export type FolderDeed =
  | 'update'
  | 'trash'
  | 'restore'
  | 'purge'
  | 'clone'
  | 'invite'
  | 'share'
  | 'leave'
  | 'transfer';

/** Why something is not possible: the words are `data.why.<reason>`. */
export type Reason =
  | 'administers'
  | 'readOnly'
  | 'noDelete'
  | 'inTrash'
  | 'busy'
  | 'hostDown'
  | 'hostUpload'
  | 'hostDownload'
  | 'hostModify'
  | 'hostDelete'
  | 'hostCreate'
  | 'hostInvite'
  | 'hostShare'
  | 'notOwner'
  | 'onlyOwner'
  | 'notCloneable'
  | 'ownNotCloneable'
  | 'dotFolder'
  | 'mounted'
  | 'ofProject'
  | 'own'
  | 'superadmin';

/** Who asks, as far as it matters here. */
export interface Asker {
  superadmin: boolean;
  /** Runs the site, or the domain. */
  administers: boolean;
}

type Hosts = readonly StorageHost[] | undefined;

const permits = (hosts: Hosts, folder: Folder, permission: string): boolean => {
  const host = hosts?.find(({ name }) => name === folder.host);
  // While nobody has answered, nothing is held against anybody: the service decides.
  return !hosts || (host?.permissions ?? []).includes(permission);
};

const UPDATABLE = ['ready', 'mounted', 'performing', 'cloning'];

/** In these a storage host answers nobody. */
const SILENT = ['down', 'starting'];

/** Why `deed` cannot be done inside the folder; null where it can. */
export function refuseFile(deed: FileDeed, folder: Folder, hosts: Hosts): Reason | null {
  if (folder.access === null) {
    return 'administers';
  }
  if (hosts?.some(({ name, state }) => name === folder.host && SILENT.includes(state))) {
    return 'hostDown';
  }
  if (deed === 'read') {
    return null;
  }
  if (deed === 'take') {
    return permits(hosts, folder, 'download-file') ? null : 'hostDownload';
  }
  return refuseWriting(deed, folder, hosts);
}

function refuseWriting(deed: FileDeed, folder: Folder, hosts: Hosts): Reason | null {
  if (folder.status === 'delete-pending') {
    return 'inTrash';
  }
  if (!UPDATABLE.includes(folder.status)) {
    return 'busy';
  }
  if (folder.access === 'ro') {
    return 'readOnly';
  }
  if (deed === 'add' && !permits(hosts, folder, 'upload-file')) {
    return 'hostUpload';
  }
  return deed === 'remove' && folder.access !== 'wd' && !folder.is_owner ? 'noDelete' : null;
}

const HOST_NEEDS: Partial<Record<FolderDeed, [string, Reason]>> = {
  update: ['modify-vfolder', 'hostModify'],
  restore: ['modify-vfolder', 'hostModify'],
  trash: ['delete-vfolder', 'hostDelete'],
  purge: ['delete-vfolder', 'hostDelete'],
  invite: ['invite-others', 'hostInvite'],
  share: ['set-user-specific-permission', 'hostShare']
};

/** Why `deed` cannot be done to the folder itself; null where it can. */
export function refuseFolder(
  deed: FolderDeed,
  folder: Folder,
  hosts: Hosts,
  asker: Asker
): Reason | null {
  switch (deed) {
    case 'clone':
      return refuseCloning(folder, hosts);
    case 'leave':
      return refuseLeaving(folder);
    case 'transfer':
      return asker.superadmin ? refuseTransfer(folder) : 'superadmin';
    case 'invite':
      return refuseInviting(folder, hosts);
    case 'trash':
      return refuseTrashing(folder, hosts, asker);
    default:
      return refuseKeeping(deed, folder, hosts, asker);
  }
}

function refuseCloning(folder: Folder, hosts: Hosts): Reason | null {
  if (folder.access === null) {
    return 'administers';
  }
  if (!folder.cloneable) {
    return folder.is_owner ? 'ownNotCloneable' : 'notCloneable';
  }
  return permits(hosts, folder, 'create-vfolder') ? null : 'hostCreate';
}

function refuseLeaving(folder: Folder): Reason | null {
  if (folder.ownership_type === 'project') {
    return 'ofProject';
  }
  return folder.is_owner ? 'own' : null;
}

function refuseTransfer(folder: Folder): Reason | null {
  if (folder.name.startsWith('.')) {
    return 'dotFolder';
  }
  return folder.status === 'ready' || folder.status === 'mounted' ? null : 'busy';
}

function refuseInviting(folder: Folder, hosts: Hosts): Reason | null {
  if (folder.ownership_type === 'project') {
    return 'ofProject';
  }
  if (!folder.is_owner) {
    return 'onlyOwner';
  }
  if (folder.name.startsWith('.')) {
    return 'dotFolder';
  }
  return permits(hosts, folder, 'invite-others') ? null : 'hostInvite';
}

function refuseTrashing(folder: Folder, hosts: Hosts, asker: Asker): Reason | null {
  const refused = refuseKeeping('trash', folder, hosts, asker);
  if (refused) {
    return refused;
  }
  if (folder.status === 'mounted') {
    return 'mounted';
  }
  return folder.status === 'ready' ? null : 'busy';
}

/** What owners do, where the host permits it to them, and administrators. */
function refuseKeeping(
  deed: FolderDeed,
  folder: Folder,
  hosts: Hosts,
  asker: Asker
): Reason | null {
  if (asker.administers) {
    return null;
  }
  if (!folder.is_owner) {
    return 'notOwner';
  }
  const [permission, reason] = HOST_NEEDS[deed] ?? ['', 'notOwner'];
  return permission && !permits(hosts, folder, permission) ? reason : null;
}
