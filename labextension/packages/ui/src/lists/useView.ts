/** A list's view, kept in the address of its page. */
import { useCallback, useMemo } from 'react';
import { useAddress } from '../address';
import type { Filter } from './list';
import { useRemembered } from './remembered';
import { changed, readView, writeView, type Change, type ListView } from './view';

export const PAGE_SIZES = [20, 50, 100] as const;

export interface Viewing {
  view: ListView;
  change(change: Change): void;
  /** Show what *view* says instead, as when a saved one is chosen. */
  replace(view: ListView): void;
}

export function useView(order: string, filters: readonly Filter[]): Viewing {
  const [address, setAddress] = useAddress();
  const [limit, setLimit] = useRemembered<number>('bai.rows', PAGE_SIZES[0]);
  const keys = filters.map(filter => filter.key).join('\n');
  const defaults = useMemo(
    () => ({ order, limit, filters: keys ? keys.split('\n') : [] }),
    [order, limit, keys]
  );
  const view = useMemo(() => readView(address, defaults), [address, defaults]);
  const write = useCallback(
    (next: ListView, pushes: boolean) => {
      if (next.limit !== limit) {
        setLimit(next.limit);
      }
      // Going on to another page can be taken back with the browser's own button.
      setAddress(old => writeView(old, next, defaults), { replace: !pushes });
    },
    [setAddress, setLimit, limit, defaults]
  );
  const change = useCallback(
    (wanted: Change) => write(changed(view, wanted), wanted.after !== undefined),
    [write, view]
  );
  const replace = useCallback((next: ListView) => write(next, true), [write]);
  return { view, change, replace };
}
