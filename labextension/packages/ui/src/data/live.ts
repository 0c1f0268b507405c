/** What the event stream tells about folders, in terms of the cache. */
import type { EventMessage } from '@backendai/api';
import type { QueryClient, QueryKey } from '@tanstack/react-query';
import { dataKeys } from './keys';

/** Answers are asked for again this often at most, however much happens. */
export const PAUSE = 1000;

interface Stale {
  keys: Map<string, QueryKey>;
  timer: ReturnType<typeof setTimeout> | undefined;
}

const waiting = new WeakMap<QueryClient, Stale>();

/** Have what is kept under `keys` asked for again: at once, then after a pause. */
export function refresh(client: QueryClient, keys: readonly QueryKey[]): void {
  const stale = waiting.get(client) ?? { keys: new Map(), timer: undefined };
  waiting.set(client, stale);
  keys.forEach(key => stale.keys.set(JSON.stringify(key), key));
  if (stale.timer === undefined) {
    flush(client, stale);
  }
}

function flush(client: QueryClient, stale: Stale): void {
  const keys = [...stale.keys.values()];
  stale.keys.clear();
  stale.timer = undefined;
  if (keys.length) {
    keys.forEach(queryKey => void client.invalidateQueries({ queryKey }));
    stale.timer = setTimeout(() => flush(client, stale), PAUSE);
  }
}

/** What changes when files of a folder do. */
export const keysOfFiles = (folderId: string): QueryKey[] => [
  dataKeys.files(folderId),
  dataKeys.folder(folderId),
  dataKeys.folders,
  dataKeys.quota
];

/** Bring what is known of folders up to date with one event. */
export function applyFolderEvent(client: QueryClient, event: EventMessage): void {
  const { kind, folder_id: id } = event;
  if (!kind.startsWith('folder.')) {
    return;
  }
  if (kind === 'folder.progress') {
    refresh(client, [dataKeys.tasks]);
    return;
  }
  const keys = id ? keysOfFiles(id) : [dataKeys.folders, dataKeys.quota];
  if (kind === 'folder.invitation' || kind === 'folder.shared') {
    keys.push(dataKeys.invitations);
  }
  refresh(client, [...keys, dataKeys.tasks]);
}

/** After a break of the stream: nothing that is known can be trusted. */
export function distrust(client: QueryClient): void {
  const { folders, tasks, invitations, quota, hosts } = dataKeys;
  refresh(client, [folders, tasks, invitations, quota, hosts, ['folder'], ['files']]);
}
