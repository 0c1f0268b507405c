/** Reads comma-separated values, as far as a preview needs them. */

/** Rows of `text`, of at most `most`; what is in quotes may hold anything. */
export function readRows(text: string, separator: ',' | ';' | '\t', most: number): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  let quoted = false;
  const endRow = (): void => {
    row.push(cell);
    rows.push(row);
    row = [];
    cell = '';
  };
  for (let at = 0; at < text.length && rows.length < most; at += 1) {
    const sign = text[at] ?? '';
    if (quoted) {
      if (sign !== '"') {
        cell += sign;
      } else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else {
        quoted = false;
      }
    } else if (sign === '"' && cell === '') {
      quoted = true;
    } else if (sign === separator) {
      row.push(cell);
      cell = '';
    } else if (sign === '\n') {
      endRow();
    } else if (sign !== '\r') {
      cell += sign;
    }
  }
  if (rows.length < most && (cell || row.length)) {
    endRow();
  }
  return rows;
}

const NUMBER = /^[-+]?(?:\d[\d,\s]*)?(?:[.,]\d+)?(?:e[-+]?\d+)?\s?%?$/i;

/** Whether a column has numbers and nothing else, except where it is empty. */
export function holdsNumbers(rows: readonly string[][], column: number): boolean {
  const cells = rows.map(row => row[column]?.trim() ?? '').filter(cell => cell !== '');
  return cells.length > 0 && cells.every(isNumber);
}

/** What begins with noughts is a name that is written in digits. */
function isNumber(cell: string): boolean {
  return NUMBER.test(cell) && /\d/.test(cell) && !/^0\d/.test(cell);
}

/** The separator that the first line has most of. */
export function separatorOf(name: string, text: string): ',' | ';' | '\t' {
  if (/\.tsv$/i.test(name)) {
    return '\t';
  }
  const line = text.slice(0, Math.max(0, text.indexOf('\n')) || undefined);
  const count = (sign: string): number => line.split(sign).length;
  const signs = [',', ';', '\t'] as const;
  return signs.reduce((best, sign) => (count(sign) > count(best) ? sign : best), signs[0]);
}
