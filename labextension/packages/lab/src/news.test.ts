import type { Session } from '@backendai/api';
import type { Listener } from '@backendai/api/shared';
import { makeEvent, makeSession } from '@backendai/ui/testing';
import { expect, test, vi } from 'vitest';
import { News, type Surroundings } from './news';

const attachment = { prefix: '/user/mina/desk/' } as Session['attachment'];
const DESK = makeSession({
  id: 'desk',
  name: 'desk',
  owner: 'mina',
  status: 'RUNNING',
  attachment
});

/** A JupyterLab in the session `desk`; what it was told, and a stream to tell it more. */
function openLab({ path = '/user/mina/desk/', counted = [[DESK]] as Session[][] } = {}) {
  const listeners = new Set<Listener>();
  const shown: Surroundings[] = [];
  const told: Session[] = [];
  const answers: (() => void)[] = [];
  const listen = (listener: Listener): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const list = (): Promise<Session[] | null> =>
    new Promise(resolve => answers.push(() => resolve(counted.shift() ?? null)));
  new News(
    { listen },
    { path, list },
    { show: found => shown.push(found), tell: ended => told.push(...ended) }
  );
  return {
    listeners,
    told,
    says: () => shown.map(({ here, count }) => `${here.name} ${count}`).at(-1),
    connect: () => listeners.forEach(each => each.onState('live')),
    answer: async () => {
      answers.shift()?.();
      await Promise.resolve();
      await Promise.resolve();
    },
    hear: (session: Session, kind = 'session.moved') => {
      const data = JSON.stringify(makeEvent(session, { kind }));
      listeners.forEach(each => each.onEvent({ id: '1', event: 'session', data }));
    }
  };
}

const train = (changes: Partial<Session>): Session =>
  makeSession({ id: 'train', name: 'train', owner: 'mina', ...changes });

test('the status bar counts what runs, as it begins and ends', async () => {
  const lab = openLab();
  lab.connect();
  await lab.answer();
  expect(lab.says()).toBe('desk 1');
  lab.hear(train({ status: 'PREPARING' }));
  expect(lab.says()).toBe('desk 1');
  lab.hear(train({ status: 'RUNNING' }));
  expect(lab.says()).toBe('desk 2');
  lab.hear(train({ status: 'TERMINATING' }));
  expect(lab.says()).toBe('desk 1');
});

test('what others run is not counted', async () => {
  const lab = openLab();
  lab.connect();
  await lab.answer();
  lab.hear(train({ status: 'RUNNING', owner: 'grace' }));
  expect(lab.says()).toBe('desk 1');
});

test('what happens while sessions are counted is not lost', async () => {
  const lab = openLab({ counted: [[DESK]] });
  lab.connect();
  lab.hear(train({ status: 'RUNNING' }));
  await lab.answer();
  expect(lab.says()).toBe('desk 2');
});

test('after a break they are counted anew', async () => {
  const lab = openLab({ counted: [[DESK], [DESK, train({ status: 'RUNNING' })]] });
  lab.connect();
  await lab.answer();
  lab.connect();
  await lab.answer();
  expect(lab.says()).toBe('desk 2');
});

test('an end is told, whatever is open', async () => {
  vi.useFakeTimers();
  const lab = openLab();
  lab.connect();
  await lab.answer();
  lab.hear(train({ status: 'TERMINATED' }), 'session.terminated');
  vi.runAllTimers();
  vi.useRealTimers();
  expect(lab.told.map(each => each.name)).toEqual(['train']);
});

test('a JupyterLab that runs somewhere else stops listening and shows nothing', async () => {
  const lab = openLab({ path: '/' });
  lab.connect();
  await lab.answer();
  expect(lab.listeners.size).toBe(0);
  expect(lab.says()).toBeUndefined();
});

test('a platform that does not answer is listened to, as it may answer later', async () => {
  const lab = openLab({ counted: [] });
  lab.connect();
  await lab.answer();
  expect(lab.listeners.size).toBe(1);
});
