/** Every question that the pages about data ask the service. */
import { unwrap } from '@backendai/api';
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { Host } from '../host';
import type { Polling } from '../stream';
import { dataKeys } from './keys';
import type { Folder, Sorting } from './types';

export const folderQuery = ({ api, visible }: Host, id: string, polling: Polling) =>
  queryOptions({
    queryKey: dataKeys.folder(id),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/folders/{reference}', { params: { path: { reference: id } }, signal })
      ),
    refetchInterval: polling,
    enabled: visible
  });

export interface EntriesView {
  path: string;
  sort: Sorting;
  descending: boolean;
  search: string;
}

const PAGE = 500;

export const entriesQuery = (
  { api, visible }: Host,
  folder: Folder,
  view: EntriesView,
  polling: Polling
) =>
  infiniteQueryOptions({
    queryKey: dataKeys.entries(folder.id, view),
    queryFn: ({ signal, pageParam }) =>
      unwrap(
        api.GET('/api/folders/{folder_id}/entries', {
          params: {
            path: { folder_id: folder.id },
            query: { ...view, limit: PAGE, after: pageParam }
          },
          signal
        })
      ),
    initialPageParam: '',
    getNextPageParam: page => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: polling,
    enabled: visible && folder.access !== null
  });

export const entryQuery = ({ api, visible }: Host, folderId: string, path: string) =>
  queryOptions({
    queryKey: dataKeys.entry(folderId, path),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/folders/{folder_id}/entry', {
          params: { path: { folder_id: folderId }, query: { path } },
          signal
        })
      ),
    enabled: visible
  });

export const textQuery = (
  { api, visible }: Host,
  folderId: string,
  path: string,
  tag: string
) =>
  queryOptions({
    queryKey: dataKeys.content(folderId, path, tag, 'text'),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/folders/{folder_id}/text', {
          params: { path: { folder_id: folderId }, query: { path } },
          signal
        })
      ),
    staleTime: Infinity, // its tag changes with its content
    enabled: visible
  });

/** The beginning of a file, as bytes. */
export const beginningQuery = (
  { api, visible }: Host,
  folderId: string,
  path: string,
  { tag, size }: { tag: string; size: number },
  most: number
) =>
  queryOptions({
    queryKey: dataKeys.content(folderId, path, tag, `first ${most}`),
    queryFn: async ({ signal }) => {
      if (size === 0) {
        return new Uint8Array();
      }
      const call = api.GET('/api/folders/{folder_id}/content', {
        params: { path: { folder_id: folderId }, query: { path } },
        headers: { Range: `bytes=0-${Math.min(size, most) - 1}` },
        parseAs: 'arrayBuffer',
        signal
      });
      return new Uint8Array((await unwrap<unknown>(call)) as ArrayBuffer);
    },
    staleTime: Infinity,
    enabled: visible
  });

export const trashedQuery = ({ api, visible }: Host, folderId: string) =>
  infiniteQueryOptions({
    queryKey: dataKeys.trashed(folderId),
    queryFn: ({ signal, pageParam }) =>
      unwrap(
        api.GET('/api/folders/{folder_id}/trashed', {
          params: {
            path: { folder_id: folderId },
            query: { limit: 100, ...(pageParam ? { after: pageParam } : {}) }
          },
          signal
        })
      ),
    initialPageParam: '',
    getNextPageParam: page => page.next,
    enabled: visible
  });

export const guestsQuery = ({ api, visible }: Host, folderId: string) =>
  queryOptions({
    queryKey: dataKeys.guests(folderId),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/folders/{reference}/share', {
          params: { path: { reference: folderId } },
          signal
        })
      ),
    enabled: visible
  });

export const activityQuery = ({ api, visible }: Host, folderId: string) =>
  infiniteQueryOptions({
    queryKey: dataKeys.activity(folderId),
    queryFn: ({ signal, pageParam }) =>
      unwrap(
        api.GET('/api/folders/{reference}/activity', {
          params: {
            path: { reference: folderId },
            query: { limit: 30, ...(pageParam ? { after: pageParam } : {}) }
          },
          signal
        })
      ),
    initialPageParam: '',
    getNextPageParam: page => page.next,
    enabled: visible
  });

export const tasksQuery = ({ api, visible }: Host, folderId: string | null, polling: Polling) =>
  queryOptions({
    queryKey: folderId ? dataKeys.tasksOf(folderId) : dataKeys.tasks,
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/folder-tasks', {
          params: { query: { limit: 20, ...(folderId ? { folder: folderId } : {}) } },
          signal
        })
      ),
    refetchInterval: polling,
    enabled: visible
  });

export const invitationsQuery = ({ api, visible }: Host, polling: Polling) =>
  queryOptions({
    queryKey: dataKeys.invitations,
    queryFn: ({ signal }) => unwrap(api.GET('/api/invitations', { signal })),
    refetchInterval: polling,
    enabled: visible
  });

export const hostsQuery = ({ api, visible }: Host) =>
  queryOptions({
    queryKey: dataKeys.hosts,
    queryFn: ({ signal }) => unwrap(api.GET('/api/storage-hosts', { signal })),
    staleTime: 60_000,
    enabled: visible
  });

export const quotaQuery = ({ api, visible }: Host) =>
  queryOptions({
    queryKey: dataKeys.quota,
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/quota-scopes', { params: { query: { limit: 100 } }, signal })),
    enabled: visible
  });
