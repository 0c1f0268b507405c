/**
 * Uploads under way, whichever page is shown.
 *
 * What is dropped at once is a *batch*: one row, however many files it has. A few files
 * are sent at a time, over all batches; each ends for itself.
 */
import type { Clash } from '../types';
import type { Gathered } from './gather';

export type ItemState = 'waiting' | 'sending' | 'stored' | 'clash' | 'failed' | 'dropped';

/** Where a batch goes. */
export interface Destination {
  folderId: string;
  folder: string;
  /** The place in the folder. */
  path: string;
}

export interface Item {
  path: string;
  /** Let go of when it is stored. */
  file: File | null;
  size: number;
  sent: number;
  state: ItemState;
  reason: string;
}

interface Batch {
  id: number;
  to: Destination;
  items: Item[];
  paused: boolean;
  conflict: Clash;
}

/** A batch as pages show it. */
export interface BatchView {
  id: number;
  to: Destination;
  files: number;
  stored: number;
  /** Left out, since something had that name. */
  dropped: number;
  clashes: string[];
  failures: { path: string; reason: string }[];
  bytes: number;
  sent: number;
  paused: boolean;
  /** Nothing of it is sent or waits any more. */
  ended: boolean;
}

export interface Sending {
  /** Stop; what has arrived is kept, so that it can go on. */
  pause(): void;
  /** Stop, and forget what has arrived. */
  cancel(): void;
}

export interface SendOptions {
  to: Destination;
  path: string;
  file: File;
  conflict: Clash;
  onProgress(sent: number): void;
  onStored(): void;
  onClash(): void;
  onFailed(reason: string): void;
}

/** Sends one file; `makeFolder` makes one that has no files. */
export interface Transport {
  send(options: SendOptions): Sending;
  makeFolder(to: Destination, path: string): Promise<void>;
}

/** So many files are on their way at a time. */
export const AT_ONCE = 4;
/** Pages are told of progress this often at most, in milliseconds. */
export const NEWS = 200;

export class UploadQueue {
  private batches: Batch[] = [];
  private readonly sendings = new Map<Item, Sending>();
  private readonly listeners = new Set<() => void>();
  private readonly stored = new Set<(to: Destination) => void>();
  private views: readonly BatchView[] = [];
  private transport: Transport | null = null;
  private lastId = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly atOnce = AT_ONCE) {}

  /** Say how files are sent from now on. */
  use(transport: Transport): void {
    this.transport = transport;
    this.go();
  }

  /** For `useSyncExternalStore`. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly view = (): readonly BatchView[] => this.views;

  /** Be told where something new has appeared. */
  onStored(listener: (to: Destination) => void): () => void {
    this.stored.add(listener);
    return () => this.stored.delete(listener);
  }

  /** Whether leaving the page would break something off. */
  get busy(): boolean {
    return this.batches.some(batch => batch.items.some(isOpen));
  }

  add(to: Destination, { files, empty }: Gathered): void {
    const items = files.map(({ path, file }) => makeItem(path, file));
    this.lastId += 1;
    this.batches.push({ id: this.lastId, to, items, paused: false, conflict: 'fail' });
    void this.makeFolders(to, empty);
    this.tell();
    this.go();
  }

  pause(id: number): void {
    const batch = this.find(id);
    if (batch) {
      batch.paused = true;
      for (const item of batch.items.filter(each => each.state === 'sending')) {
        this.stop(item, 'pause');
        item.state = 'waiting';
      }
      this.settle();
    }
  }

  resume(id: number): void {
    const batch = this.find(id);
    if (batch) {
      batch.paused = false;
      this.settle();
    }
  }

  /** End what is left of a batch; what is stored stays. */
  cancel(id: number): void {
    const batch = this.find(id);
    for (const item of batch?.items ?? []) {
      this.stop(item, 'cancel');
    }
    this.forget(id);
  }

  /** Take a batch out of sight. */
  forget(id: number): void {
    this.batches = this.batches.filter(batch => batch.id !== id);
    this.settle();
  }

  /** Say what becomes of the files whose names are taken. */
  decide(id: number, conflict: 'replace' | 'rename' | 'skip'): void {
    const batch = this.find(id);
    if (!batch) {
      return;
    }
    if (conflict !== 'skip') {
      batch.conflict = conflict;
    }
    for (const item of batch.items.filter(each => each.state === 'clash')) {
      item.state = conflict === 'skip' ? 'dropped' : 'waiting';
      item.file = conflict === 'skip' ? null : item.file;
    }
    this.settle();
  }

  /** Try once more what has failed. */
  retry(id: number): void {
    for (const item of this.find(id)?.items ?? []) {
      if (item.state === 'failed') {
        item.state = 'waiting';
        item.reason = '';
      }
    }
    this.settle();
  }

  private find(id: number): Batch | undefined {
    return this.batches.find(batch => batch.id === id);
  }

  private stop(item: Item, how: 'pause' | 'cancel'): void {
    this.sendings.get(item)?.[how]();
    this.sendings.delete(item);
  }

  private settle(): void {
    this.tell();
    this.go();
  }

  private go(): void {
    for (const batch of this.batches) {
      if (batch.paused) {
        continue;
      }
      for (const item of batch.items) {
        if (!this.transport || this.sendings.size >= this.atOnce) {
          return;
        }
        if (item.state === 'waiting') {
          this.send(this.transport, batch, item);
        }
      }
    }
  }

  private send(transport: Transport, batch: Batch, item: Item): void {
    if (!item.file) {
      return;
    }
    item.state = 'sending';
    // A word about a file that was stopped meanwhile comes too late.
    const ends = (change: Partial<Item>) => (): void => {
      if (this.sendings.delete(item)) {
        Object.assign(item, change);
        this.settle();
      }
    };
    const options: SendOptions = {
      to: batch.to,
      path: item.path,
      file: item.file,
      conflict: batch.conflict,
      onProgress: sent => {
        item.sent = sent;
        this.tellSoon();
      },
      onStored: () => {
        ends({ state: 'stored', sent: item.size, file: null })();
        this.stored.forEach(listener => listener(batch.to));
      },
      onClash: ends({ state: 'clash', sent: 0 }),
      onFailed: reason => ends({ state: 'failed', reason })()
    };
    // Known before it begins: it may end at once.
    this.sendings.set(item, { pause: () => undefined, cancel: () => undefined });
    const sending = transport.send(options);
    if (this.sendings.has(item)) {
      this.sendings.set(item, sending);
    }
  }

  private async makeFolders(to: Destination, paths: string[]): Promise<void> {
    for (const path of paths) {
      await this.transport?.makeFolder(to, path).catch(() => undefined);
      this.stored.forEach(listener => listener(to));
    }
  }

  private tellSoon(): void {
    this.timer ??= setTimeout(() => this.tell(), NEWS);
  }

  private tell(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.views = this.batches.map(show);
    this.listeners.forEach(listener => listener());
  }
}

function makeItem(path: string, file: File): Item {
  return { path, file, size: file.size, sent: 0, state: 'waiting', reason: '' };
}

function isOpen({ state }: Item): boolean {
  return state === 'waiting' || state === 'sending';
}

function show({ id, to, items, paused }: Batch): BatchView {
  const view: BatchView = {
    id,
    to,
    files: items.length,
    stored: 0,
    dropped: 0,
    clashes: [],
    failures: [],
    bytes: 0,
    sent: 0,
    paused,
    ended: !items.some(isOpen)
  };
  for (const item of items) {
    view.bytes += item.size;
    view.sent += item.sent;
    if (item.state === 'stored') {
      view.stored += 1;
    } else if (item.state === 'dropped') {
      view.dropped += 1;
    } else if (item.state === 'clash') {
      view.clashes.push(item.path);
    } else if (item.state === 'failed') {
      view.failures.push({ path: item.path, reason: item.reason });
    }
  }
  return view;
}
