/** The rows somebody has chosen, also those of pages that are not shown any more. */
import { useCallback, useMemo, useState } from 'react';

export interface Selection<Row> {
  rows: Row[];
  has(row: Row): boolean;
  toggle(row: Row): void;
  /** Choose all of *shown*, or none of them if all are chosen. */
  toggleAll(shown: Row[]): void;
  clear(): void;
}

export function useSelection<Row>(keyOf: (row: Row) => string, shown: Row[]): Selection<Row> {
  const [chosen, setChosen] = useState<ReadonlyMap<string, Row>>(new Map());
  const clear = useCallback(() => setChosen(new Map()), []);
  const rows = useMemo(() => {
    // As they are now, not as they were when they were chosen.
    const current = new Map(shown.map(row => [keyOf(row), row]));
    return [...chosen].map(([key, row]) => current.get(key) ?? row);
  }, [chosen, shown, keyOf]);
  return {
    rows,
    has: row => chosen.has(keyOf(row)),
    toggle: row =>
      setChosen(old => without(old, keyOf(row)) ?? new Map(old).set(keyOf(row), row)),
    toggleAll: list =>
      setChosen(old => {
        const all = list.every(row => old.has(keyOf(row)));
        const next = new Map(old);
        list.forEach(row => (all ? next.delete(keyOf(row)) : next.set(keyOf(row), row)));
        return next;
      }),
    clear
  };
}

function without<Row>(old: ReadonlyMap<string, Row>, key: string): Map<string, Row> | null {
  if (!old.has(key)) {
    return null;
  }
  const next = new Map(old);
  next.delete(key);
  return next;
}
