// @vitest-environment happy-dom
import { createApi, type EventMessage, type ShownSession } from '@backendai/api';
import { notifyManager, QueryClientProvider, type QueryClient } from '@tanstack/react-query';
import { act, cleanup, render, screen, within } from '@testing-library/react';
import { I18nextProvider } from 'react-i18next';
import { afterEach, describe, expect, test } from 'vitest';
import { HostProvider, type Host } from '../host';
import { createTranslator } from '../i18n';
import { createQueryClient, keys } from '../queries';
import {
  makeContainer,
  makeEvent,
  makeMount,
  makeSession,
  makeShown,
  makeWhy
} from '../testing';
import { applyToCache } from './live';
import { SessionPage } from './SessionPage';
import { SessionTable } from './SessionTable';

afterEach(cleanup);
// The cache tells its readers within `act`, instead of some time later.
notifyManager.setScheduler(queueMicrotask);

/** A service with one session, which counts how often it is asked about it. */
function serve(session: ShownSession, more: Record<string, unknown> = {}) {
  const asked: string[] = [];
  const service = { session, asked };
  const api = createApi(request => {
    const path = new URL(request.url).pathname;
    asked.push(path);
    const me = { name: 'mina', roles: ['user'] };
    const others: Record<string, unknown> = { '/api/me': me, ...more };
    const body = path.endsWith('/events') ? [] : (others[path] ?? service.session);
    return Promise.resolve(Response.json(body));
  }, 'http://localhost/');
  const host: Host = {
    kind: 'console',
    api,
    listen: () => () => undefined,
    notify: () => undefined,
    addressOf: path => path,
    writeHeaders: () => ({}),
    retitle: () => undefined,
    hrefOf: path => path,
    open: () => undefined,
    launchHref: () => '/hub/spawn',
    login: () => undefined,
    language: 'en',
    colorMode: 'light',
    visible: true
  };
  return { service, host };
}

async function show(host: Host, page: JSX.Element): Promise<QueryClient> {
  const client = createQueryClient();
  render(
    <I18nextProvider i18n={await createTranslator('en', ['launch', 'work'])}>
      <QueryClientProvider client={client}>
        <HostProvider value={host}>{page}</HostProvider>
      </QueryClientProvider>
    </I18nextProvider>
  );
  return client;
}

/** What the stream tells is on the page afterwards. */
function tell(client: QueryClient, event: EventMessage): Promise<void> {
  return act(async () => {
    applyToCache(client, event);
    await Promise.resolve();
  });
}

async function open(session: ShownSession, more?: Record<string, unknown>) {
  const { service, host } = serve(session, more);
  const client = await show(host, <SessionPage params={{ id: session.id }} />);
  await screen.findByRole('heading', { name: session.name });
  return { service, client, tell: (event: EventMessage) => tell(client, event) };
}

const waiting = makeShown({
  status: 'PENDING',
  reason: 'no room',
  why: makeWhy({
    changes: [{ text: 'with 2 cpu', yours: true, slots: null, resource_group: null }]
  })
});

test('a session that loads gives its tab no other name than its own', async () => {
  const { host } = serve(waiting);
  const titles: string[] = [];
  const retitle = (title: string): void => void titles.push(title);

  await show({ ...host, kind: 'lab', retitle }, <SessionPage params={{ id: waiting.id }} />);
  await screen.findByRole('heading', { name: waiting.name });

  expect(new Set(titles)).toEqual(new Set(['Loading…', waiting.name]));
});

describe('the page of a session that waits', () => {
  test('says everything that is known of why', async () => {
    await open(waiting);

    const card = within(screen.getByRole('region', { name: 'Why it waits' }));
    expect(card.getByText('Number 2 in the queue')).toBeTruthy();
    expect(card.getByText('CPU: asks 4, 2 free on gpu-01')).toBeTruthy();
    expect(card.getByText('with 2 CPU')).toBeTruthy();
    expect(card.getByText('Nobody knows yet when it starts')).toBeTruthy();
    expect(screen.getAllByText(/in the queue/)).toHaveLength(1); // and nothing twice
  });

  test('follows what the stream tells, without asking again', async () => {
    const { service, tell } = await open(waiting);
    const before = service.asked.length;

    const why = makeWhy({
      at: '2026-01-02T03:00:01.000Z',
      position: 1,
      reasons: ['mem: asks 4g, 1g free'],
      starts_at: '2026-01-02T05:00:00Z'
    });
    await tell(makeEvent(waiting, { kind: 'session.waiting', why }));

    const card = within(screen.getByRole('region', { name: 'Why it waits' }));
    expect(card.getByText('Memory: asks 4g, 1g free')).toBeTruthy();
    expect(card.queryByText('CPU: asks 4, 2 free on gpu-01')).toBeNull();
    expect(card.getByText(/It starts at the latest/)).toBeTruthy();
    expect(service.asked.length).toBe(before);
  });

  test('is not taken back by what was found out earlier', async () => {
    const { tell } = await open(waiting);
    const why = makeWhy({ at: '2026-01-02T02:00:00.000Z', reasons: ['long ago'] });

    await tell(makeEvent(waiting, { kind: 'session.waiting', why }));

    expect(screen.queryByText('long ago')).toBeNull();
  });

  test('says nothing of it any more once it has room, and asks where it is', async () => {
    const { service, tell } = await open(waiting);
    const placed = makeShown({ status: 'SCHEDULED', revision: 2 });
    service.session = { ...placed, containers: [makeContainer()] };
    const before = service.asked.length;

    await tell(makeEvent(placed));

    expect(screen.queryByRole('region', { name: 'Why it waits' })).toBeNull();
    expect(service.asked.slice(before)).toEqual(['/api/sessions/a']);
  });
});

test('a list follows the place in the queue, without asking', async () => {
  const { service, host } = serve(waiting);
  const row = makeSession({ status: 'PENDING', reason: 'no room' });
  const client = await show(
    host,
    <SessionTable sessions={[row]} showOwner={false} onStop={() => undefined} />
  );
  expect(screen.queryByText(/in the queue/)).toBeNull();

  await tell(client, makeEvent(row, { why: makeWhy({ position: 1 }) }));
  expect(screen.getByText('Number 1 in the queue')).toBeTruthy();

  // It waits again after it had room: the old place says nothing any more.
  await tell(client, makeEvent({ ...row, status: 'SCHEDULED' }));
  expect(screen.queryByText(/in the queue/)).toBeNull();
  expect(service.asked).toEqual([]);
});

test('a fact without words of its own is told by the state it led to', async () => {
  const { tell } = await open(makeShown());

  await tell(makeEvent(makeSession(), { seq: 7, kind: 'session.started', text: '' }));

  const history = within(screen.getByRole('region', { name: 'History' }));
  expect(history.getByText('Running')).toBeTruthy();
});

describe('the node of a session', () => {
  const me = { name: 'mina', roles: ['user'], sees_agents: true };
  const node = { name: 'n1', status: 'LOST' };
  const service = { '/api/me': me, '/api/agent-summaries': { items: [node], next: null } };
  const silent = /Does not answer now/;

  test('is told to be silent while it is, and the session runs', async () => {
    await open(makeShown({ agent: 'n1' }), service);
    await screen.findByText(silent);
    cleanup();

    await open(makeShown({ agent: 'n1', status: 'TERMINATED' }), service);
    expect(screen.getByText('n1')).toBeTruthy();
    expect(screen.queryByText(silent)).toBeNull();
  });

  test('is not asked about by those who do not see nodes', async () => {
    const { service: seen } = await open(makeShown({ agent: 'n1' }), {
      ...service,
      '/api/me': { ...me, sees_agents: false }
    });
    await screen.findByText('n1');
    expect(seen.asked).not.toContain('/api/agent-summaries');
  });
});

test('a session that had to make room says how often', async () => {
  await open(makeShown({ preemptions: 2 }));
  expect(screen.getByText('2×')).toBeTruthy();
});

test('a batch session that has ended says how', async () => {
  const done = { status: 'TERMINATED', type: 'batch' } as const;
  await open(makeShown({ ...done, result: 'failure' }));
  expect(screen.getByText('Failed')).toBeTruthy();
  cleanup();

  await open(makeShown({ ...done, result: 'success' }));
  expect(screen.getByText('Succeeded')).toBeTruthy();
  cleanup();

  await open(makeShown({ ...done, result: 'undefined', reason: 'stopped by mina' }));
  expect(screen.getByText('Stopped')).toBeTruthy();
  expect(screen.queryByText('Failed')).toBeNull();
  cleanup();

  await open(makeShown({ status: 'TERMINATED' }));
  expect(screen.getAllByText('Ended')).not.toHaveLength(0);
});

describe('the end of a session that nobody uses', () => {
  const inSeconds = (seconds: number): string =>
    new Date(Date.now() + 1000 * seconds).toISOString();

  test('is counted down, and is urgent in its last minutes', async () => {
    await open(makeShown({ idle_expires_at: inSeconds(2 * 3600 + 50 * 60 + 30) }));
    const said = screen.getByText('Ends in 2 hr 50 min if nobody uses it.');
    expect(said.closest('[role=status]')?.className).toContain('bai-tone-warning');
    cleanup();

    await open(makeShown({ idle_expires_at: inSeconds(100) }));
    const soon = screen.getByText(/^Ends in 1 min \d+ sec if nobody uses it\.$/);
    expect(soon.closest('[role=status]')?.className).toContain('bai-tone-error');
  });

  test('is not told where nobody knows it, or it is not running', async () => {
    await open(makeShown());
    expect(screen.queryByText(/^Ends in/)).toBeNull();
    cleanup();

    await open(makeShown({ status: 'TERMINATED', idle_expires_at: inSeconds(100) }));
    expect(screen.queryByText(/^Ends in/)).toBeNull();
  });
});

describe('what an event leaves out', () => {
  test('stays as the service has told it', async () => {
    const shown = makeShown({
      cluster_size: 2,
      cluster_network: 'its containers reach each other by name',
      containers: [makeContainer()],
      idle_expires_at: '2026-01-02T09:00:00Z',
      mounts: [makeMount('data')]
    });
    const { client, tell } = await open(shown);

    await tell(makeEvent(makeSession({ cluster_size: 2, revision: 2, reason: 'busy' })));

    expect(client.getQueryData(keys.session('a'))).toEqual({
      ...shown,
      revision: 2,
      reason: 'busy'
    });
  });
});

test('the folders of a session are told with where they are, and how', async () => {
  const mounts = [
    makeMount('data', { subpath: '2026', target: '/datasets/one', permission: 'ro' }),
    makeMount('.cache', { automatic: true, host: 'nas' })
  ];
  await open(makeShown({ mounts }));

  const section = within(screen.getByRole('region', { name: 'Folders' }));
  const [, data, cache] = section.getAllByRole('row').map(row => row.textContent);
  expect(data).toMatch(/data\/2026.*\/datasets\/one.*read only.*local/);
  expect(cache).toMatch(/\.cache.*\/home\/work\/\.cache.*read and write.*by itself.*nas/);
  cleanup();

  await open(makeShown());
  expect(screen.queryByRole('region', { name: 'Folders' })).toBeNull();
});

describe('the containers of a session', () => {
  const gpu = { name: 'gpu-0', model: 'A100', slot: 'cuda.device', amount: '1', slices: [] };
  const instance = {
    name: 'gpu-1',
    model: 'A100',
    slot: 'cuda.device:3g.20gb-mig',
    amount: '1',
    slices: [4, 5, 6, 7]
  };

  test('are told one by one where there are several', async () => {
    await open(
      makeShown({
        cluster_size: 2,
        cluster_network: 'its containers reach each other by name (main1, sub1)',
        containers: [
          makeContainer({ devices: [gpu] }),
          makeContainer({
            id: 'c2',
            host: 'sub1',
            role: 'sub',
            node: 'gpu-02',
            state: 'pulling',
            reason: 'fetching 3 of 9 layers',
            devices: [instance]
          })
        ]
      })
    );

    const section = within(screen.getByRole('region', { name: 'Containers' }));
    expect(
      section.getByText('Its containers reach each other by name (main1, sub1).')
    ).toBeTruthy();
    const [, main, sub] = section.getAllByRole('row').map(row => row.textContent);
    expect(main).toMatch(/main1.*Main.*Running.*gpu-01.*A100 gpu-0/);
    expect(sub).toMatch(/sub1.*Sub 1.*Fetching.*fetching 3 of 9 layers.*gpu-02/);
    expect(sub).toContain('A100 gpu-1: NVIDIA 3g.20gb, slices 4–7');
    expect(screen.getByText(/in each of 2 containers/)).toBeTruthy();
  });

  test('are announced while there are none', async () => {
    await open(makeShown({ status: 'PENDING', cluster_size: 3 }));

    expect(screen.getByText(/The 3 containers appear here/)).toBeTruthy();
  });

  test('that have failed say with which code', async () => {
    const failed = makeContainer({ state: 'exited', exit_code: 137 });
    await open(makeShown({ cluster_size: 2, containers: [failed] }));

    expect(screen.getByText('Exit code 137')).toBeTruthy();
  });

  test('are not worth a table where there is one: its devices are a fact', async () => {
    const name = 'GPU-2361c17c-ae50-5589-8eb6-775921be67fa';
    const half = { ...gpu, name, slot: 'cuda.shares', amount: '0.5' };
    await open(makeShown({ containers: [makeContainer({ devices: [instance, half] })] }));

    expect(screen.queryByRole('region', { name: 'Containers' })).toBeNull();
    expect(screen.getByText('A100 gpu-1: NVIDIA 3g.20gb, slices 4–7')).toBeTruthy();
    expect(screen.getByText('A100 GPU-2361c17c (0.5 NVIDIA GPU share)').title).toBe(name);
  });
});
