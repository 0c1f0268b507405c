/** Paths inside a folder: relative, with slashes; the folder itself is `''`. */

export function join(...parts: string[]): string {
  return parts.filter(Boolean).join('/');
}

export function parentOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Every folder on the way to `path`, the outermost first, with what it is called. */
export function waysTo(path: string): { name: string; path: string }[] {
  const names = path.split('/').filter(Boolean);
  return names.map((name, at) => ({ name, path: names.slice(0, at + 1).join('/') }));
}

/** Whether `path` is `folder`, or lies in it. */
export function isWithin(path: string, folder: string): boolean {
  return folder === '' || path === folder || path.startsWith(`${folder}/`);
}

/** The address of the explorer at one place, and of what is shown beside it there. */
export function explorerAt(folderId: string, path = '', show = ''): string {
  const query = new URLSearchParams();
  if (path) {
    query.set('path', path);
  }
  if (show) {
    query.set('show', show);
  }
  const text = query.toString();
  return `/data/${folderId}${text ? `?${text}` : ''}`;
}

const LONGEST_NAME = 255;
const bytes = new TextEncoder();

export type NameFault = 'empty' | 'dots' | 'slash' | 'long' | 'control';

/** What keeps `name` from being one in a folder; null if nothing does. */
export function faultOf(name: string): NameFault | null {
  if (name === '') {
    return 'empty';
  }
  if (name === '.' || name === '..') {
    return 'dots';
  }
  if (name.includes('/')) {
    return 'slash';
  }
  if (bytes.encode(name).length > LONGEST_NAME) {
    return 'long';
  }
  // eslint-disable-next-line no-control-regex -- that is what is looked for
  return /[\u0000-\u001f\u007f]/.test(name) ? 'control' : null;
}
