/** Which columns of a list are shown: what somebody chose here before, else the usual ones. */
import { useMemo, useState } from 'react';
import type { ListColumn, ListOf } from './list';
import { recall, useOwn } from './remembered';

export interface Columns<Row> {
  shown: ListColumn<Row>[];
  /** Those that can be shown or not; what names a row always is. */
  optional: ListColumn<Row>[];
  isShown(key: string): boolean;
  toggle(key: string): void;
  /** Back to the usual ones; null while these are shown. */
  reset: (() => void) | null;
}

/** Only what differs from the usual columns is kept, so that new ones are seen. */
type Choices = Record<string, boolean>;

export function useColumns<Row>({
  name,
  columns
}: Pick<ListOf<Row>, 'name' | 'columns'>): Columns<Row> {
  // Earlier versions kept them for the whole browser: nobody's secrets, so a beginning.
  const [usual] = useState(() => recall<Choices>(`bai.columns.${name}`, {}));
  const [choices, setChoices] = useOwn(`bai.columns.${name}`, usual);
  return useMemo(() => {
    const isShown = (key: string): boolean => {
      const column = columns.find(each => each.key === key);
      return column?.head === true || (choices[key] ?? !column?.hidden);
    };
    return {
      shown: columns.filter(column => isShown(column.key)),
      optional: columns.filter(column => !column.head && !column.quiet),
      isShown,
      toggle: key => setChoices({ ...choices, [key]: !isShown(key) }),
      reset: Object.keys(choices).length ? () => setChoices({}) : null
    };
  }, [columns, choices, setChoices]);
}
