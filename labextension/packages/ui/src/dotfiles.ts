/** The rules of dotfiles, as the service has them, said while one types. */

export interface Dotfile {
  path: string;
  permission: string;
  content: string;
}

const PATH_LENGTH = 256;
const DEPTH = 8;
const NAME_BYTES = 255;
export const TOTAL_BYTES = 64 << 10;
const RESERVED = [
  '.terminfo',
  '.jupyter',
  '.ssh',
  '.ssh/authorized_keys',
  '.local',
  '.config',
  '.backendai'
];
const CLOSED = ['.backendai', '.ssh/authorized_keys'];

export const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/** What is wrong with a path: a key of `dotfiles.wrong.…`, or null. */
export function wrongPath(path: string): string | null {
  if (!path) {
    return 'empty';
  }
  if (path.length > PATH_LENGTH) {
    return 'long';
  }
  if (
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(path) ||
    path.includes('\\') ||
    path !== path.normalize('NFC')
  ) {
    return 'letters';
  }
  return wrongPlace(path);
}

function wrongPlace(path: string): string | null {
  const parts = path.split('/');
  if (path.startsWith('/') || parts[0] === '~') {
    return 'absolute';
  }
  if (parts.some(part => part === '' || part === '.' || part === '..')) {
    return 'dots';
  }
  if (parts.length > DEPTH || parts.some(part => bytesOf(part) > NAME_BYTES)) {
    return 'deep';
  }
  const taken = CLOSED.some(closed => path === closed || path.startsWith(`${closed}/`));
  return taken || RESERVED.includes(path) ? 'reserved' : null;
}

export const isPermission = (text: string): boolean => /^[0-7]{3}$/.test(text);

/** What is wrong with all of them together, by key. */
export function wrongTogether(files: readonly Dotfile[]): string | null {
  const paths = files.map(file => file.path);
  if (new Set(paths).size < paths.length) {
    return 'twice';
  }
  if (paths.some(one => paths.some(other => other.startsWith(`${one}/`)))) {
    return 'fileAndFolder';
  }
  const total = files.reduce((sum, file) => sum + bytesOf(file.content), 0);
  return total > TOTAL_BYTES ? 'tooMuch' : null;
}
