/** Which entries of one place are chosen; another place begins with none. */
import { useCallback, useEffect, useRef, useState } from 'react';
import type { FileEntry } from '../types';

export interface Selection {
  names: ReadonlySet<string>;
  chosen: FileEntry[];
  /** With `range`, all between this one and the last one chosen are. */
  select(name: string, at: number, selected: boolean, range: boolean): void;
  selectAll(all: boolean): void;
  clear(): void;
}

export function useSelection(items: readonly FileEntry[], place: string): Selection {
  const [names, setNames] = useState<ReadonlySet<string>>(new Set());
  const last = useRef(0);
  const shown = useRef(items);
  useEffect(() => {
    shown.current = items;
  });
  const clear = useCallback(() => setNames(new Set()), []);
  useEffect(clear, [place, clear]);
  const select = useCallback(
    (name: string, at: number, selected: boolean, range: boolean): void => {
      const ends = range ? [last.current, at].sort((a, b) => a - b) : [at, at];
      const [from = at, to = at] = ends;
      last.current = at;
      const meant = range ? shown.current.slice(from, to + 1).map(entry => entry.name) : [name];
      setNames(old => {
        const next = new Set(old);
        meant.forEach(each => (selected ? next.add(each) : next.delete(each)));
        return next;
      });
    },
    []
  );
  return {
    names,
    // What has gone meanwhile is not chosen any more.
    chosen: items.filter(entry => names.has(entry.name)),
    select,
    selectAll: all => setNames(new Set(all ? items.map(entry => entry.name) : [])),
    clear
  };
}
