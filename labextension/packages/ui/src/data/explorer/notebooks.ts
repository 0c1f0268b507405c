/** Reads notebooks into plain parts: text, and pictures as data. Nothing in them is run. */

export type Output =
  | { kind: 'text' | 'error'; text: string }
  | { kind: 'image'; source: string; text: string }
  | { kind: 'other'; types: string[] };

export interface Cell {
  kind: 'code' | 'markdown' | 'raw';
  source: string;
  count: number | null;
  outputs: Output[];
}

type Json = Record<string, unknown>;

const isObject = (given: unknown): given is Json =>
  typeof given === 'object' && given !== null && !Array.isArray(given);

/** Text is written as one string, or as a list of lines. */
function textOf(given: unknown): string {
  if (Array.isArray(given)) {
    return given.filter(line => typeof line === 'string').join('');
  }
  return typeof given === 'string' ? given : '';
}

/** The cells of a notebook; null where it is none. */
export function readNotebook(text: string): Cell[] | null {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(read) || !Array.isArray(read.cells)) {
    return null;
  }
  return read.cells.filter(isObject).map(readCell);
}

function readCell(cell: Json): Cell {
  const kind = cell.cell_type;
  const count = cell.execution_count;
  return {
    kind: kind === 'code' || kind === 'markdown' ? kind : 'raw',
    source: textOf(cell.source),
    count: typeof count === 'number' ? count : null,
    outputs: Array.isArray(cell.outputs) ? cell.outputs.filter(isObject).map(readOutput) : []
  };
}

function readOutput(output: Json): Output {
  if (output.output_type === 'stream') {
    return { kind: 'text', text: plain(textOf(output.text)) };
  }
  if (output.output_type === 'error') {
    const lines = Array.isArray(output.traceback) ? output.traceback : [];
    const said = `${textOf(output.ename)}: ${textOf(output.evalue)}`;
    return { kind: 'error', text: plain(lines.map(textOf).join('\n')) || said };
  }
  return readData(isObject(output.data) ? output.data : {});
}

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const BASE64 = /^[A-Za-z0-9+/=\s]+$/;

function readData(data: Json): Output {
  const text = plain(textOf(data['text/plain']));
  for (const type of PICTURES) {
    const encoded = textOf(data[type]);
    if (BASE64.test(encoded)) {
      return {
        kind: 'image',
        source: `data:${type};base64,${encoded.replace(/\s/g, '')}`,
        text
      };
    }
  }
  return text ? { kind: 'text', text } : { kind: 'other', types: Object.keys(data) };
}

/** Without the signs that colour text in terminals. */
function plain(text: string): string {
  // eslint-disable-next-line no-control-regex -- that is what is taken out
  return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '');
}
