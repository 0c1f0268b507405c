/** What somebody dropped or picked, as files with their paths, folders and all. */
import { join } from '../paths';

export interface Gathered {
  files: { path: string; file: File }[];
  /** Folders with nothing in them: they come with no file. */
  empty: string[];
}

/** What is used of the browser's `FileSystemEntry`. */
export interface DroppedEntry {
  name: string;
  isFile: boolean;
  isDirectory: boolean;
  file?(found: (file: File) => void, failed: (reason: unknown) => void): void;
  createReader?(): {
    readEntries(
      found: (entries: DroppedEntry[]) => void,
      failed: (reason: unknown) => void
    ): void;
  };
}

/** Take what lies in a drop. To be called at once: the browser forgets it after the event. */
export function entriesOf(transfer: DataTransfer): DroppedEntry[] {
  return [...transfer.items]
    .filter(item => item.kind === 'file')
    .map(item => item.webkitGetAsEntry() as DroppedEntry | null)
    .filter(entry => entry !== null);
}

/** Read all that lies in dropped entries, however deep. */
export async function gatherEntries(entries: DroppedEntry[]): Promise<Gathered> {
  const gathered: Gathered = { files: [], empty: [] };
  for (const entry of entries) {
    await gather(entry, '', gathered);
  }
  return gathered;
}

async function gather(entry: DroppedEntry, above: string, into: Gathered): Promise<void> {
  const path = join(above, entry.name);
  if (entry.isFile) {
    into.files.push({ path, file: await fileOf(entry) });
  } else if (entry.isDirectory) {
    const children = await childrenOf(entry);
    if (children.length === 0) {
      into.empty.push(path);
    }
    for (const child of children) {
      await gather(child, path, into);
    }
  }
}

function fileOf(entry: DroppedEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file?.(resolve, reject));
}

/** Browsers hand out a folder's entries a hundred at a time. */
async function childrenOf(entry: DroppedEntry): Promise<DroppedEntry[]> {
  const reader = entry.createReader?.();
  const found: DroppedEntry[] = [];
  for (;;) {
    const batch = await new Promise<DroppedEntry[]>((resolve, reject) =>
      reader ? reader.readEntries(resolve, reject) : resolve([])
    );
    if (batch.length === 0) {
      return found;
    }
    found.push(...batch);
  }
}

/** Take what was picked in a file dialog, of files or of a folder. */
export function gatherPicked(files: FileList | readonly File[]): Gathered {
  return {
    files: [...files].map(file => ({ path: file.webkitRelativePath || file.name, file })),
    empty: []
  };
}
