/** How a file can be looked at, by its name. What is in it is never run, nor shown as a page. */

export type PreviewKind = 'image' | 'notebook' | 'table' | 'text' | 'archive';

const BY_ENDING: Record<PreviewKind, readonly string[]> = {
  // Not `svg`: such pictures are programs as well, and are shown as text.
  image: ['png', 'jpg', 'jpeg', 'gif', 'webp', 'bmp', 'ico', 'avif'],
  notebook: ['ipynb'],
  table: ['csv', 'tsv'],
  archive: ['zip', 'tar', 'gz', 'tgz'],
  text: []
};

export function endingOf(name: string): string {
  return /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? '';
}

/** Whatever nobody knows may be text: that is seen when it is read. */
export function kindOf(name: string): PreviewKind {
  const ending = endingOf(name);
  const kinds = Object.keys(BY_ENDING) as PreviewKind[];
  return kinds.find(kind => BY_ENDING[kind].includes(ending)) ?? 'text';
}

const UNPACKED = /\.(zip|tar|tar\.gz|tgz)$/i;

/** Whether the service can unpack it. */
export function isArchive(name: string): boolean {
  return UNPACKED.test(name);
}

/** The text in *bytes*; null where they are none. A character cut off at the end is left out. */
export function readText(bytes: Uint8Array, isWhole: boolean): string | null {
  if (bytes.includes(0)) {
    return null;
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: !isWhole });
  } catch {
    return null;
  }
}
