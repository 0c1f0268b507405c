import { describe, expect, test, vi } from 'vitest';
import { NEWS, UploadQueue, type Destination, type SendOptions, type Transport } from './queue';

const HERE: Destination = { folderId: 'f', folder: 'data', path: 'in' };

/** Sends nothing by itself: the test says what becomes of each file. */
class Wire implements Transport {
  sent: SendOptions[] = [];
  stopped: string[] = [];
  folders: string[] = [];

  send(options: SendOptions) {
    this.sent.push(options);
    return {
      pause: () => this.stopped.push(`pause ${options.path}`),
      cancel: () => this.stopped.push(`cancel ${options.path}`)
    };
  }

  makeFolder(_: Destination, path: string): Promise<void> {
    this.folders.push(path);
    return Promise.resolve();
  }

  of(path: string): SendOptions {
    const found = this.sent.filter(each => each.path === path).at(-1);
    if (!found) {
      throw new Error(`${path} was not sent`);
    }
    return found;
  }
}

function files(...paths: string[]) {
  return { files: paths.map(path => ({ path, file: new File(['12345'], path) })), empty: [] };
}

function begin(...paths: string[]) {
  const wire = new Wire();
  const queue = new UploadQueue(2);
  queue.use(wire);
  queue.add(HERE, files(...paths));
  const row = () => {
    const view = queue.view()[0];
    if (!view) {
      throw new Error('there is no batch');
    }
    return view;
  };
  return { wire, queue, row };
}

describe('a batch', () => {
  test('is one row, and a few of its files are on their way at a time', () => {
    const { wire, queue, row } = begin('a', 'b', 'c');

    expect(queue.view()).toHaveLength(1);
    expect(wire.sent.map(each => each.path)).toEqual(['a', 'b']);
    wire.of('a').onStored();
    expect(wire.sent.map(each => each.path)).toEqual(['a', 'b', 'c']);
    expect(row()).toMatchObject({ files: 3, stored: 1, sent: 5, bytes: 15, ended: false });
  });

  test('of many hundred files ends with each of them', () => {
    const { wire, queue, row } = begin(...Array.from({ length: 500 }, (_, at) => `${at}`));

    for (let at = 0; at < 500; at += 1) {
      wire.of(`${at}`).onStored();
    }

    expect(row()).toMatchObject({ stored: 500, ended: true });
    expect(queue.busy).toBe(false);
  });

  test('that waits keeps what has arrived, and goes on from there', () => {
    const { wire, queue, row } = begin('a', 'b', 'c');

    queue.pause(1);
    expect(wire.stopped).toEqual(['pause a', 'pause b']);
    expect(row().paused).toBe(true);
    expect(wire.sent).toHaveLength(2);
    wire.of('a').onFailed('it was cut off'); // so it was, by the pause
    expect(row()).toMatchObject({ failures: [], ended: false });

    queue.resume(1);
    expect(wire.sent.map(each => each.path)).toEqual(['a', 'b', 'a', 'b']);
  });

  test('that waits lets others go first', () => {
    const { wire, queue } = begin('a');
    queue.pause(1);

    queue.add(HERE, files('z'));

    expect(wire.sent.at(-1)?.path).toBe('z');
  });

  test('asks what is to become of names that are taken', () => {
    const { wire, queue, row } = begin('a', 'b');
    wire.of('a').onClash();
    wire.of('b').onStored();
    expect(row()).toMatchObject({ clashes: ['a'], ended: true });

    queue.decide(1, 'rename');

    expect(wire.of('a').conflict).toBe('rename');
    expect(row().clashes).toEqual([]);
  });

  test('may leave out what is there already', () => {
    const { wire, queue, row } = begin('a');
    wire.of('a').onClash();

    queue.decide(1, 'skip');

    expect(wire.sent).toHaveLength(1);
    expect(row()).toMatchObject({ dropped: 1, clashes: [], ended: true });
  });

  test('names what failed, and tries only that again', () => {
    const { wire, queue, row } = begin('a', 'b');
    wire.of('a').onFailed('no room');
    wire.of('b').onStored();
    expect(row().failures).toEqual([{ path: 'a', reason: 'no room' }]);

    queue.retry(1);

    expect(wire.sent.map(each => each.path)).toEqual(['a', 'b', 'a']);
    expect(row().failures).toEqual([]);
  });

  test('that is ended leaves nothing half-way', () => {
    const { wire, queue } = begin('a', 'b', 'c');

    queue.cancel(1);
    wire.of('a').onStored(); // it was on its way: too late

    expect(wire.stopped).toEqual(['cancel a', 'cancel b']);
    expect(wire.sent).toHaveLength(2);
    expect(queue.view()).toEqual([]);
    expect(queue.busy).toBe(false);
  });

  test('brings folders without files, too', async () => {
    const { wire, queue } = begin('a');

    queue.add(HERE, { files: [], empty: ['x', 'y/z'] });

    await vi.waitFor(() => expect(wire.folders).toEqual(['x', 'y/z']));
  });
});

describe('pages', () => {
  test('are told of progress now and then, and of ends at once', () => {
    vi.useFakeTimers();
    const { wire, queue, row } = begin('a', 'b');
    const told = vi.fn();
    queue.subscribe(told);

    for (let sent = 1; sent < 5; sent += 1) {
      wire.of('a').onProgress(sent);
    }
    expect(told).not.toHaveBeenCalled();
    vi.advanceTimersByTime(NEWS);
    expect(told).toHaveBeenCalledTimes(1);
    expect(row().sent).toBe(4);

    wire.of('a').onStored();
    expect(told).toHaveBeenCalledTimes(2);
    vi.useRealTimers();
  });

  test('hear where something new is', () => {
    const { wire, queue } = begin('a');
    const heard = vi.fn();
    queue.onStored(heard);

    wire.of('a').onStored();

    expect(heard).toHaveBeenCalledWith(HERE);
  });

  test('see the same rows as long as nothing has changed', () => {
    const { queue } = begin('a');

    expect(queue.view()).toBe(queue.view());
  });
});
