/** A plain table that becomes a list of cards where there is no room for columns. */
import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react';
import type { ReactNode } from 'react';
import { Checkbox } from './Checkbox';

export interface Column<Row> {
  key: string;
  title: string;
  cell(row: Row): ReactNode;
  /** The name the service sorts by; absent where it cannot. */
  sort?: string;
  align?: 'end';
  /** Keep the title for screen readers only. */
  quiet?: boolean;
  /** What identifies the row: its header cell, and a card's title. */
  head?: boolean;
}

/** Which rows are chosen, and how to choose. */
export interface Selecting<Row> {
  has(row: Row): boolean;
  toggle(row: Row): void;
  /** Choose everything that is shown, or nothing of it. */
  toggleAll(): void;
  /** The label of a row's box, and of the one above them. */
  label(row: Row): string;
  labelAll: string;
}

interface Props<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey(row: Row): string;
  dimmed?(row: Row): boolean;
  order?: string;
  onOrder?(order: string): void;
  sortLabel?(title: string): string;
  selecting?: Selecting<Row> | undefined;
}

/* Explicit roles: browsers forget what a table is once CSS lays it out as cards. */
export function DataTable<Row>(props: Props<Row>): JSX.Element {
  const { caption, columns, rows, rowKey, dimmed, selecting } = props;
  return (
    <table role="table" className="bai-table">
      <caption className="bai-hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {selecting ? <ChooseAll rows={rows} selecting={selecting} /> : null}
          {columns.map(column => (
            <HeaderCell key={column.key} column={column} {...props} />
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map(row => (
          <tr
            key={rowKey(row)}
            role="row"
            data-dimmed={dimmed?.(row) ? '' : undefined}
            data-chosen={selecting?.has(row) ? '' : undefined}
          >
            {selecting ? <Choose row={row} selecting={selecting} /> : null}
            {columns.map(column => {
              const Cell = column.head ? 'th' : 'td';
              return (
                <Cell
                  key={column.key}
                  role={column.head ? 'rowheader' : 'cell'}
                  scope={column.head ? 'row' : undefined}
                  data-column={column.key}
                  data-align={column.align}
                >
                  <span className="bai-card-label" aria-hidden>
                    {column.quiet || column.head ? '' : column.title}
                  </span>
                  <span className="bai-cell">{column.cell(row)}</span>
                </Cell>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Choose<Row>({ row, selecting }: { row: Row; selecting: Selecting<Row> }): JSX.Element {
  const Cell = 'td';
  return (
    <Cell role="cell" data-column="choose">
      <Checkbox
        quiet
        label={selecting.label(row)}
        checked={selecting.has(row)}
        onChange={() => selecting.toggle(row)}
      />
    </Cell>
  );
}

function ChooseAll<Row>({
  rows,
  selecting
}: {
  rows: Row[];
  selecting: Selecting<Row>;
}): JSX.Element {
  const chosen = rows.filter(row => selecting.has(row)).length;
  return (
    <th role="columnheader" scope="col" data-column="choose">
      <Checkbox
        quiet
        label={selecting.labelAll}
        checked={rows.length > 0 && chosen === rows.length}
        partly={chosen > 0 && chosen < rows.length}
        onChange={selecting.toggleAll}
      />
    </th>
  );
}

function HeaderCell<Row>({
  column,
  order,
  onOrder,
  sortLabel
}: Props<Row> & { column: Column<Row> }): JSX.Element {
  const { sort, title } = column;
  if (!sort || !onOrder) {
    return (
      <th role="columnheader" scope="col" data-align={column.align}>
        <span className={column.quiet ? 'bai-hidden' : undefined}>{title}</span>
      </th>
    );
  }
  const state = order === sort ? 'ascending' : order === `-${sort}` ? 'descending' : 'none';
  const Icon = { ascending: ArrowUp, descending: ArrowDown, none: ChevronsUpDown }[state];
  return (
    <th role="columnheader" scope="col" aria-sort={state} data-align={column.align}>
      <button
        type="button"
        className="bai-sort"
        title={sortLabel?.(title)}
        onClick={() => onOrder(state === 'ascending' ? `-${sort}` : sort)}
      >
        {title}
        <Icon size={14} aria-hidden />
      </button>
    </th>
  );
}
