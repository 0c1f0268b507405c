/** What is in one place of a folder: the pages read so far, and how to go on. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useHost } from '../../host';
import { usePolling } from '../../stream';
import { entriesQuery, type EntriesView } from '../queries';
import type { FileEntry, Folder } from '../types';

export interface Entries {
  /** Undefined while nobody has answered. */
  items: FileEntry[] | undefined;
  /** How many there are, those not read yet included. */
  total: number;
  error: Error | null;
  hasMore: boolean;
  /** What is shown is of another view, or is being read anew. */
  busy: boolean;
  loadMore(): void;
  retry(): void;
}

export function useEntries(folder: Folder, view: EntriesView): Entries {
  const host = useHost();
  const polling = usePolling();
  const query = useInfiniteQuery(entriesQuery(host, folder, view, polling));
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = query;
  const items = useMemo(() => data?.pages.flatMap(page => page.items), [data]);
  return {
    items,
    total: data?.pages.at(-1)?.total ?? 0,
    error: query.error,
    hasMore: hasNextPage,
    busy: query.isPlaceholderData,
    loadMore: () => {
      if (hasNextPage && !isFetchingNextPage) {
        void fetchNextPage();
      }
    },
    retry: () => void refetch()
  };
}
