// @vitest-environment happy-dom
import type { StreamState } from '@backendai/api';
import { act, cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { applyAnnouncement } from '../announced';
import { StreamProvider } from '../stream';
import { makeShown } from '../testing';
import { showPage, type Asked } from '../testing-page';
import { EVERY, Log } from './Log';

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

const running = makeShown({ status: 'RUNNING', attempts: 1 });

interface Told {
  text: string;
  live: boolean;
  followed: boolean;
}

/** Show the log of a session, as a service tells it; what changes it, and who asks. */
async function open(state: StreamState, first: Partial<Told> = {}) {
  const told: Told = { text: 'one\n', live: true, followed: true, ...first };
  const set: { state?(next: StreamState): void; session?(next: typeof running): void } = {};
  function Page(): JSX.Element {
    const [stream, setStream] = useState(state);
    const [session, setSession] = useState(running);
    set.state = setStream;
    set.session = setSession;
    return (
      <StreamProvider value={stream}>
        <Log session={session} />
      </StreamProvider>
    );
  }
  const { asked, client } = await showPage(<Page />, {
    areas: ['work'],
    answer: () => ({ session_id: running.id, attempt: 1, clipped: false, ...told })
  });
  const logs = (): Asked[] => asked.filter(each => each.path.endsWith('/log'));
  await screen.findByText(told.text.trim());
  return {
    told,
    logs,
    become: (next: StreamState) => act(() => set.state?.(next)),
    change: (next: typeof running) => act(() => set.session?.(next)),
    announce: (id = running.id) => act(() => applyAnnouncement(client, [], [id])),
    wait: () => act(async () => void (await vi.advanceTimersByTimeAsync(100 * EVERY)))
  };
}

describe('a log that is followed', () => {
  test('is asked for once while the stream works, and to be told of', async () => {
    const { logs, wait } = await open('live');
    await wait();
    expect(logs()).toHaveLength(1);
    expect(logs()[0]?.query.get('follow')).toBe('true');
  });

  test('is asked for when the stream tells of it, and of no other', async () => {
    const { told, logs, wait, announce } = await open('live');
    await announce('another session');
    await wait();
    expect(logs()).toHaveLength(1);
    told.text = 'one\ntwo\n';
    await announce();
    await screen.findByText(/two/);
    await wait();
    expect(logs()).toHaveLength(2);
  });

  test.each(['connecting', 'retrying', 'refused'] as const)(
    'is asked for by the clock while the stream is %s, and no more when it works',
    async state => {
      const { logs, wait, become } = await open(state);
      await wait();
      expect(logs().length).toBeGreaterThan(50);
      await become('live');
      const before = logs().length;
      await wait();
      expect(logs().length - before).toBeLessThanOrEqual(1);
    }
  );

  test('is asked for by the clock where the service does not follow it', async () => {
    const { told, logs, wait } = await open('live', { followed: false });
    await wait();
    expect(logs().length).toBeGreaterThan(50);
    told.followed = true;
    await wait();
    const before = logs().length;
    await wait();
    expect(logs()).toHaveLength(before);
  });

  test('is asked for when the session stands elsewhere, and not by the clock', async () => {
    const { told, logs, wait, change } = await open('live');
    Object.assign(told, { live: false, followed: false });
    await change({ ...running, status: 'TERMINATED' });
    await waitFor(() => expect(logs()).toHaveLength(2));
    await wait();
    expect(logs()).toHaveLength(2);
  });

  test('of an earlier attempt is asked for once', async () => {
    const { logs, wait } = await open('retrying', { live: false, followed: false });
    await wait();
    expect(logs()).toHaveLength(1);
  });
});

test('who does not follow a log keeps what they look at, until they do again', async () => {
  const { told, logs, wait, announce } = await open('live');
  fireEvent.click(screen.getByRole('switch', { name: 'Follow' }));
  told.text = 'one\ntwo\n';
  await announce();
  await wait();
  expect(logs()).toHaveLength(1);
  fireEvent.click(screen.getByRole('switch', { name: 'Follow' }));
  await screen.findByText(/two/);
  expect(logs()).toHaveLength(2);
});
