// @vitest-environment happy-dom
import type { StreamState } from '@backendai/api';
import {
  focusManager,
  QueryClient,
  QueryClientProvider,
  useQuery
} from '@tanstack/react-query';
import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { applyAnnouncement, distrustAnnounced } from './announced';
import { keys } from './queries';
import { POLL, StreamProvider, usePolling } from './stream';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  cleanup();
  focusManager.setFocused(undefined);
  vi.useRealTimers();
});

/** Something that follows the stream, and counts how often it was asked for. */
function Follower({ ask, visible }: { ask(): void; visible: boolean }): JSX.Element {
  const { data } = useQuery({
    queryKey: [...keys.queue, 'gpu'],
    queryFn: () => {
      ask();
      return Promise.resolve('told');
    },
    refetchInterval: usePolling(),
    enabled: visible
  });
  return <p>{data}</p>;
}

function follow(state: StreamState, visible = true) {
  const client = new QueryClient();
  const ask = vi.fn();
  const page = (now: StreamState, seen: boolean): JSX.Element => (
    <QueryClientProvider client={client}>
      <StreamProvider value={now}>
        <Follower ask={ask} visible={seen} />
      </StreamProvider>
    </QueryClientProvider>
  );
  const { rerender } = render(page(state, visible));
  const wait = (milliseconds: number): Promise<void> =>
    act(async () => void (await vi.advanceTimersByTimeAsync(milliseconds)));
  return {
    client,
    ask,
    wait,
    become: (now: StreamState, seen = true) => rerender(page(now, seen))
  };
}

test('asks once while the stream works, however long that is', async () => {
  const { ask, wait } = follow('live');
  await wait(100 * POLL);
  expect(ask).toHaveBeenCalledTimes(1);
  expect(screen.getByText('told')).toBeDefined();
});

test('asks again when its kind is announced, and for no other', async () => {
  const { client, ask, wait } = follow('live');
  await wait(0);
  applyAnnouncement(client, ['nodes', 'a kind of a newer service']);
  await wait(POLL);
  expect(ask).toHaveBeenCalledTimes(1);
  applyAnnouncement(client, ['queue']);
  await wait(0);
  expect(ask).toHaveBeenCalledTimes(2);
});

test('what is announced while nobody sees the window is asked for when somebody does', async () => {
  const { client, ask, wait } = follow('live');
  await wait(0);
  focusManager.setFocused(false);
  applyAnnouncement(client, ['queue']);
  applyAnnouncement(client, ['queue']);
  await wait(POLL);
  expect(ask).toHaveBeenCalledTimes(1);
  focusManager.setFocused(true);
  await wait(0);
  expect(ask).toHaveBeenCalledTimes(2);
});

test('after a break of the stream all that is announced is asked for again', async () => {
  const { client, ask, wait } = follow('live');
  await wait(0);
  distrustAnnounced(client);
  await wait(0);
  expect(ask).toHaveBeenCalledTimes(2);
});

test.each(['connecting', 'retrying', 'refused'] as const)(
  'looks itself while the stream is %s, and stops when it works again',
  async state => {
    const { ask, wait, become } = follow(state);
    await wait(3 * POLL);
    expect(ask).toHaveBeenCalledTimes(4);
    become('live');
    await wait(10 * POLL);
    expect(ask).toHaveBeenCalledTimes(4);
  }
);

test('looks at nothing that nobody sees', async () => {
  const { ask, wait, become } = follow('retrying', false);
  await wait(10 * POLL);
  expect(ask).not.toHaveBeenCalled();
  become('retrying', true);
  await wait(0);
  expect(ask).toHaveBeenCalledTimes(1);
});
