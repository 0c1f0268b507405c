/** Text of a terminal as lines to read and to search. */

/** What begins a command to the terminal: escape, and an end of some of them: bell. */
const [ESC, BEL] = [String.fromCharCode(27), String.fromCharCode(7)];
const COMMAND = `${ESC}\\[[0-9;?]*[ -/]*[@-~]`;
const TITLE = `${ESC}\\][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)`;
const CONTROLS = new RegExp(`${COMMAND}|${TITLE}|[^\\t\\n\\r\\P{Cc}]`, 'gu');

/** Take colours and cursor moves away; what overwrites its line is the line. */
export function stripColours(text: string): string {
  return text
    .replace(CONTROLS, '')
    .split('\n')
    .map(line => line.replace(/\r+$/, '').split('\r').at(-1) ?? '')
    .join('\n');
}

/** The numbers of the lines that *wanted* is in; none, if nothing is wanted. */
export function findLines(lines: readonly string[], wanted: string): number[] {
  const part = wanted.trim().toLowerCase();
  return part
    ? lines.flatMap((line, index) => (line.toLowerCase().includes(part) ? [index] : []))
    : [];
}
