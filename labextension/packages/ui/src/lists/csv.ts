/** A list as a file that spreadsheets read. */
import type { ListColumn, ListOf } from './list';
import type { ListView } from './view';

/** Rows asked for at a time. */
const AT_A_TIME = 100;

export async function exportList<Row>(
  list: Pick<ListOf<Row>, 'columns' | 'load'>,
  view: ListView,
  signal: AbortSignal,
  onRows: (count: number) => void
): Promise<Blob> {
  const columns = list.columns.filter(column => column.csv);
  const parts = [`\ufeff${line(columns.map(column => column.title))}`];
  let after: string | null = '';
  let count = 0;
  while (after !== null) {
    const page: { items: Row[]; next: string | null } = await list.load(
      { ...view, after, limit: AT_A_TIME },
      signal
    );
    signal.throwIfAborted();
    parts.push(page.items.map(row => line(cells(columns, row))).join(''));
    count += page.items.length;
    onRows(count);
    // A cursor that does not move would go on for ever.
    after = page.next === after ? null : page.next;
  }
  return new Blob(parts, { type: 'text/csv;charset=utf-8' });
}

function cells<Row>(columns: ListColumn<Row>[], row: Row): string[] {
  return columns.map(column => column.csv?.(row) ?? '');
}

export function line(values: readonly string[]): string {
  return `${values.map(cell).join(',')}\r\n`;
}

/** Names are chosen by users: no spreadsheet may take one for a formula. */
function cell(value: string): string {
  const isNumber = /^-?\d+(\.\d+)?$/.test(value);
  const safe = !isNumber && /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function saveAs(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // Browsers read the file after the click has returned.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
