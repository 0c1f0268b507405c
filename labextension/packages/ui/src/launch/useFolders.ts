/** Asking for folders, a page at a time, once somebody has stopped typing. */
import type { Folder, FolderPage } from '@backendai/api';
import { useCallback, useEffect, useState } from 'react';
import { means, type ChosenMount } from './mounts';

export interface FolderSearch {
  search?: string;
  /** The cursor of the page wanted. */
  after?: string;
  /** These alone, by id or name. */
  folders?: string[];
}

/** Asks the service for folders that can be mounted. */
export type FindFolders = (wanted: FolderSearch, signal: AbortSignal) => Promise<FolderPage>;

export const TYPING = 300;

export interface FolderList {
  /** Null while nobody has answered yet. */
  items: Folder[] | null;
  hasMore: boolean;
  failed: boolean;
  loadMore(): void;
  retry(): void;
}

interface Found {
  items: Folder[];
  next: string;
}

export function useFolders(find: FindFolders, search: string): FolderList {
  const [asked, setAsked] = useState({ search, after: '' });
  const [found, setFound] = useState<Found | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (search === asked.search) {
      return undefined;
    }
    const timer = setTimeout(() => setAsked({ search, after: '' }), TYPING);
    return () => clearTimeout(timer);
  }, [search, asked.search]);
  useEffect(() => {
    const gone = new AbortController();
    const take = ({ items, next }: FolderPage): void =>
      setFound(old => ({
        items: asked.after && old ? [...old.items, ...items] : items,
        next: next ?? ''
      }));
    find(asked, gone.signal).then(
      page => {
        if (!gone.signal.aborted) {
          setFailed(false);
          take(page);
        }
      },
      () => {
        if (!gone.signal.aborted) {
          setFailed(true);
        }
      }
    );
    return () => gone.abort();
  }, [find, asked]);
  return {
    items: found?.items ?? null,
    hasMore: Boolean(found?.next),
    failed,
    loadMore: () => setAsked(old => ({ ...old, after: found?.next ?? '' })),
    retry: () => setAsked(old => ({ ...old }))
  };
}

interface Known {
  lookUp(reference: string): Folder | undefined;
  remember(folder: Folder): void;
}

/** What is known of the chosen folders: those of an earlier choice are asked for once. */
export function useChosenFolders(find: FindFolders, mounts: ChosenMount[]): Known {
  const [known, setKnown] = useState<Folder[]>([]);
  const [given] = useState(() => mounts.map(each => each.folder));
  useEffect(() => {
    if (given.length === 0) {
      return undefined;
    }
    const gone = new AbortController();
    find({ folders: given }, gone.signal).then(
      ({ items }) => {
        if (!gone.signal.aborted) {
          setKnown(old => [...items, ...old]);
        }
      },
      () => undefined // they are shown as they were written then
    );
    return () => gone.abort();
  }, [find, given]);
  const remember = useCallback((one: Folder) => setKnown(old => [one, ...old]), []);
  return { lookUp: reference => known.find(each => means(reference, each)), remember };
}
