// @vitest-environment happy-dom
import type { EventMessage, Listener, Session } from '@backendai/api';
import { QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, render } from '@testing-library/react';
import { I18nextProvider } from 'react-i18next';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MINA, serve } from '../data/serving';
import { HostProvider } from '../host';
import { createTranslator } from '../i18n';
import { createQueryClient, keys } from '../queries';
import { makeEvent, makeSession } from '../testing';
import { Endings } from './Endings';
import { PAUSE } from './ends';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

const KINDS: Partial<Record<Session['status'], string>> = {
  TERMINATED: 'session.terminated',
  ERROR: 'session.failed',
  CANCELLED: 'session.cancelled'
};

const ends = (changes: Partial<Session>): EventMessage => {
  const session = makeSession({ status: 'TERMINATED', owner: MINA.name, ...changes });
  return makeEvent(session, { kind: KINDS[session.status] ?? 'session.started' });
};

/** What somebody is told who hears these. */
async function hear(...events: EventMessage[]): Promise<string[]> {
  const { host, told } = serve({});
  const translator = await createTranslator('en');
  const client = createQueryClient();
  client.setQueryData(keys.me, MINA);
  const listeners: Listener[] = [];
  const listen = (one: Listener): (() => void) => {
    listeners.push(one);
    return () => undefined;
  };
  render(
    <I18nextProvider i18n={translator}>
      <QueryClientProvider client={client}>
        <HostProvider value={{ ...host, listen }}>
          <Endings />
        </HostProvider>
      </QueryClientProvider>
    </I18nextProvider>
  );
  for (const event of events) {
    const data = JSON.stringify(event);
    listeners.forEach(one => one.onEvent({ id: `${event.seq}`, event: 'session', data }));
  }
  act(() => void vi.advanceTimersByTime(PAUSE));
  return told.map(({ level, text }) => `${level} ${text}`);
}

test('the end of one’s own session is told, with what became of it', async () => {
  const job = { type: 'batch' } as const;
  const told = await hear(
    ends({ ...job, result: 'success' }),
    ends({ ...job, name: 'eval', result: 'failure' }),
    ends({ name: 'desk', reason: 'was not used for 1 hour' })
  );

  expect(told).toEqual(['success train: Succeeded', 'error eval: Failed', 'info desk: Ended']);
});

test('what was refused, or taken out of the queue by somebody else, is told', async () => {
  const told = await hear(
    ends({ status: 'ERROR' }),
    ends({ status: 'CANCELLED', reason: `stopped by ${MINA.name}-2` })
  );

  expect(told).toEqual(['error train: Failed', 'warning train: Cancelled']);
});

test('nobody is told what they did themselves, what others have, or what goes on', async () => {
  const told = await hear(
    ends({ reason: `stopped by ${MINA.name}` }),
    ends({ reason: `stopped by ${MINA.name} by force` }),
    ends({ status: 'CANCELLED', reason: `cancelled by ${MINA.name} before it started` }),
    ends({ owner: 'grace' }),
    ends({ status: 'RUNNING' })
  );

  expect(told).toEqual([]);
});

test('many that end together are told together, as loudly as the worst of them', async () => {
  const told = await hear(
    ...Array.from({ length: 40 }, () => ends({})),
    ends({ status: 'ERROR' })
  );

  expect(told).toEqual(['error 41 of your sessions have ended.']);
});
