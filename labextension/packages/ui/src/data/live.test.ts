import type { EventMessage } from '@backendai/api';
import { QueryClient } from '@tanstack/react-query';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { makeEvent, makeSession } from '../testing';
import { dataKeys } from './keys';
import { applyFolderEvent, distrust, PAUSE } from './live';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function happens(kind: string, folder: string | null = 'f1'): EventMessage {
  const changes = { kind, folder_id: folder, session_id: null, session: null };
  return makeEvent(makeSession(), changes);
}

/** A cache that knows a few things, and which of them are out of date. */
function cache() {
  const client = new QueryClient();
  const known = [
    dataKeys.folders,
    dataKeys.folder('f1'),
    dataKeys.folder('f2'),
    dataKeys.entries('f1', { path: '' }),
    dataKeys.entries('f2', { path: '' }),
    dataKeys.invitations,
    dataKeys.tasks
  ];
  const renew = (): void => known.forEach(key => client.setQueryData(key, {}));
  renew();
  const stale = (): string[] =>
    known
      .filter(key => client.getQueryState(key)?.isInvalidated)
      .map(key => key.filter(part => typeof part === 'string').join(' '));
  return { client, renew, stale };
}

describe('an event about a folder', () => {
  test('has only what it can have changed asked for again', () => {
    const { client, stale } = cache();

    applyFolderEvent(client, happens('folder.changed'));

    expect(stale()).toEqual(['folders', 'folder f1', 'files f1 entries', 'folder-tasks']);
  });

  test('of sharing reaches the invitations', () => {
    const { client, stale } = cache();

    applyFolderEvent(client, happens('folder.invitation'));

    expect(stale()).toContain('invitations');
  });

  test('of progress concerns what is under way alone', () => {
    const { client, stale } = cache();

    applyFolderEvent(client, happens('folder.progress'));

    expect(stale()).toEqual(['folder-tasks']);
  });

  test('is told apart from what happens to sessions', () => {
    const { client, stale } = cache();

    applyFolderEvent(client, happens('session.changed', null));

    expect(stale()).toEqual([]);
  });

  test('of many has the service asked once in a while', () => {
    const { client, renew, stale } = cache();
    const asked = vi.spyOn(client, 'invalidateQueries');
    applyFolderEvent(client, happens('folder.changed'));
    const once = asked.mock.calls.length;
    renew();

    for (let many = 0; many < 300; many += 1) {
      applyFolderEvent(client, happens('folder.changed'));
    }
    expect(asked).toHaveBeenCalledTimes(once);
    vi.advanceTimersByTime(PAUSE);

    expect(asked).toHaveBeenCalledTimes(2 * once);
    expect(stale()).toContain('files f1 entries');
    vi.advanceTimersByTime(10 * PAUSE);
    expect(asked).toHaveBeenCalledTimes(2 * once);
  });
});

test('after a break of the stream everything is asked for again', () => {
  const { client, stale } = cache();

  distrust(client);

  expect(stale()).toHaveLength(7);
});
