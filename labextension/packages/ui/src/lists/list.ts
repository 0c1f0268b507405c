/** What a list is: what it shows, how it is narrowed, and what can be done with rows. */
import type { QueryKey } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Column } from '../kit/DataTable';
import type { Option } from '../kit/SelectField';
import type { ListView } from './view';

export type ListColumn<Row> = Column<Row> & {
  /** What stands in an exported file; a column without it is not exported. */
  csv?(row: Row): string;
  /** Not shown until somebody chooses it. */
  hidden?: boolean;
};

/** One way to narrow a list: with options a choice among them, else a text. */
export interface Filter {
  key: string;
  title: string;
  options?: readonly Option[];
  /** Offered while one types; anything else may be typed as well. */
  suggestions?: readonly string[];
  /** The page itself has something to choose it with, such as tabs. */
  outside?: boolean;
}

export interface BulkAction<Row> {
  key: string;
  text: string;
  icon?: ReactNode;
  danger?: boolean;
  /** Which of the chosen rows it is for; all, if it is absent. */
  admits?(row: Row): boolean;
  /** Said where it is for none of the chosen rows. */
  why?: string;
  /** What is chosen stays chosen until this is done; `false` keeps it after that. */
  run(rows: Row[]): Promise<boolean | undefined> | boolean | undefined;
}

export interface Page<Row> {
  items: Row[];
  next: string | null;
}

export interface ListOf<Row> {
  /** Under which choices of columns and filters are kept: `sessions`. */
  name: string;
  caption: string;
  columns: ListColumn<Row>[];
  filters: Filter[];
  /** What the search box looks through; without it there is no such box. */
  searches?: string;
  /** The order when nobody has chosen one. */
  order: string;
  load(view: ListView, signal: AbortSignal): Promise<Page<Row>>;
  rowKey(row: Row): string;
  /** What a row is called by those who choose it. */
  rowName(row: Row): string;
  actions?(row: Row): ReactNode;
  bulk?: BulkAction<Row>[];
  dimmed?(row: Row): boolean;
  /** Told which rows are shown, whenever others are. */
  onRows?(rows: Row[]): void;
  empty: { icon: ReactNode; title: string; text: string; action?: ReactNode };
  /** Under which pages are cached; `['list', name, view]`, if it is absent. */
  queryKey?(view: ListView): QueryKey;
  /** Whether the stream tells what changes on it; while it is down, one looks oneself. */
  followed?: boolean;
  enabled?: boolean;
}

/** The cache key of every page of one list. */
export const listKey = (name: string): QueryKey => ['list', name];
