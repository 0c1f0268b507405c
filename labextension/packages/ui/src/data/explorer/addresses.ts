/** Where the browser finds what is in a folder: addresses of the service, on our origin. */
import type { Host } from '../../host';

export type Packing = 'zip' | 'tar' | 'tar.gz';

/** Browsers and proxies refuse addresses that are much longer. */
const LONGEST = 6000;

export function contentAddress({ addressOf }: Host, folderId: string, path: string): string {
  return addressOf(`/api/folders/${folderId}/content?${query([['path', path]])}`);
}

/** Where several paths are packed while they are sent; null where they are too many. */
export function archiveAddress(
  { addressOf }: Host,
  folderId: string,
  paths: readonly string[],
  kind: Packing
): string | null {
  const asked = query([...paths.map(path => ['path', path]), ['kind', kind]]);
  return asked.length > LONGEST ? null : addressOf(`/api/folders/${folderId}/archive?${asked}`);
}

function query(pairs: string[][]): string {
  return new URLSearchParams(pairs).toString();
}

/** Have the browser save what an address answers; the page stays. */
export function save(address: string): void {
  const link = document.createElement('a');
  link.href = address;
  link.download = '';
  link.hidden = true;
  document.body.append(link);
  link.click();
  link.remove();
}
