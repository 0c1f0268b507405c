// @vitest-environment happy-dom
import { cleanup, configure, fireEvent, screen, waitFor, within } from '@testing-library/react';
import axe from 'axe-core';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DashboardPage } from '../dashboard/DashboardPage';
import { LaunchPage } from '../launch/LaunchPage';
import { NewSession } from '../sessions/NewSession';
import { SessionsPage } from '../sessions/SessionsPage';
import { makeResources, makeSession } from '../testing';
import { showPage, type Answer } from '../testing-page';
import { StartPage } from './StartPage';

afterEach(cleanup);
beforeEach(() => localStorage.clear());
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 10_000 });

const sessions = [
  makeSession({ id: 'a', name: 'train', type: 'batch' }),
  makeSession({ id: 'b', name: 'wait', status: 'PENDING', reason: 'no room' })
];

/** A service with two sessions; what is not here is answered with nothing. */
const answer = (roles: string[] = ['user']): Answer => {
  const limits = [
    { scope: 'project', name: 'vision', slot: 'cpu', used: '6', cap: '8' },
    { scope: 'user', name: 'mina', slot: 'cpu', used: '1', cap: '8' }
  ];
  const answers: Record<string, unknown> = {
    '/api/me': {
      name: 'mina',
      domain: 'default',
      project: 'vision',
      projects: ['vision'],
      roles
    },
    '/api/resources': makeResources({ limits }),
    '/api/presets/check': { presets: [], resource_groups: [], limits: [] },
    '/api/invitations': [],
    '/api/agents': { items: [], next: null },
    '/api/usage/live': { at: 1, items: [], nodes: [] },
    '/api/sessions/dry-run': {
      refused: [],
      starts_now: true,
      nodes: ['n1'],
      slots: {},
      mounts: [],
      project: 'vision',
      resource_group: 'default',
      why: null
    },
    '/api/sessions/terminate': {
      succeeded: 1,
      failed: 0,
      results: [{ id: 'a', status: 200, name: 'train', error: null, code: null }]
    }
  };
  return ({ method, path }) => {
    if (path === '/api/sessions') {
      return method === 'POST' ? makeSession({ id: 'new' }) : { items: sessions, next: null };
    }
    return answers[path] ?? { items: [], next: null };
  };
};

const violations = async (): Promise<unknown> => {
  const rules = { region: { enabled: false } };
  const found = await axe.run(document.body, { rules });
  return found.violations.map(({ id, nodes }) => [id, nodes.map(node => node.html)]);
};

const areas = ['work', 'launch', 'data'] as const;

describe('the start', () => {
  test('offers what one can do, and what one did last', async () => {
    await showPage(<StartPage />, { answer: answer(), areas });

    await screen.findByRole('heading', { name: 'Hello, mina' });
    const cards = within(screen.getByRole('list', { name: 'What you can do' }));
    expect(cards.getAllByRole('link').map(link => link.getAttribute('href'))).toEqual([
      '/launch',
      '/launch?type=batch',
      '/data?new=1',
      '/data?upload=1',
      '/data'
    ]);
    await screen.findByRole('link', { name: 'train' });
    expect(await violations()).toEqual([]);
  });
});

test('monitors are offered nothing that they may not do', async () => {
  const { asked } = await showPage(
    <>
      <StartPage />
      <NewSession />
    </>,
    { answer: answer(['monitor']), areas }
  );

  await screen.findByRole('heading', { name: 'Hello, mina' });
  const cards = within(screen.getByRole('list', { name: 'What you can do' }));
  await waitFor(() =>
    expect(cards.getAllByRole('link').map(link => link.getAttribute('href'))).toEqual([
      '/sessions',
      '/data',
      '/nodes'
    ])
  );
  expect(screen.queryByText('New session')).toBeNull();
  expect(asked.filter(one => one.path === '/api/invitations')).toEqual([]);
});

test('monitors, who have nothing, see what everybody has', async () => {
  const monitor = { answer: answer(['monitor']), areas };
  const owners = (asked: { path: string; query: URLSearchParams }[]): (string | null)[] =>
    asked.filter(({ path }) => path === '/api/sessions').map(({ query }) => query.get('owner'));
  for (const page of [<StartPage />, <DashboardPage />, <SessionsPage />]) {
    const { asked } = await showPage(page, monitor);
    const [row] = await screen.findAllByRole('row', { name: /train/ });
    expect(row?.textContent).toContain('mina');
    expect(new Set(owners(asked))).toEqual(new Set(['*']));
    for (const own of ['My limits', 'What my sessions use', 'Everybody’s sessions']) {
      expect(screen.queryByText(own)).toBeNull();
    }
    cleanup();
  }
});

describe('the dashboard', () => {
  test('counts one’s sessions and names the nearest limit', async () => {
    await showPage(<DashboardPage />, { answer: answer(), areas });

    const tiles = within(await screen.findByRole('list', { name: 'My sessions' }));
    expect(tiles.getAllByRole('link').map(link => link.textContent)).toEqual([
      '1Running',
      '1Waiting',
      '1Interactive',
      '1Batch'
    ]);
    await screen.findByText('2 left · limited by project vision');
    expect(screen.queryByRole('heading', { name: 'Nodes' })).toBeNull();
    expect(await violations()).toEqual([]);
  });

  test('shows an administrator the nodes and who waits', async () => {
    await showPage(<DashboardPage />, { answer: answer(['superadmin']), areas });

    await screen.findByRole('heading', { name: 'Nodes' });
    await screen.findByRole('heading', { name: 'Who waits' });
  });
});

describe('the list of sessions', () => {
  test('asks for what its tabs and filters say', async () => {
    const shown = await showPage(<SessionsPage />, {
      answer: answer(['superadmin']),
      areas,
      address: '/sessions?type=batch&status=ended'
    });
    await screen.findByRole('link', { name: 'train' });
    const lists = () => shown.asked.filter(each => each.path === '/api/sessions');
    const last = () => Object.fromEntries(lists().at(-1)?.query ?? []);
    expect(last()).toMatchObject({ type: 'batch', status: 'ended' });
    expect(last()).not.toHaveProperty('owner');

    fireEvent.click(await screen.findByRole('switch', { name: 'Everybody’s sessions' }));
    await waitFor(() => expect(last()).toMatchObject({ owner: '*', type: 'batch' }));
    expect(shown.address()).toBe('/sessions?type=batch&status=ended&all=1');
    expect(await violations()).toEqual([]);
  });

  test('ends what is chosen once somebody has said so', async () => {
    const shown = await showPage(<SessionsPage />, { answer: answer(), areas });
    fireEvent.click(await screen.findByRole('checkbox', { name: 'Choose train' }));
    fireEvent.click(screen.getByRole('button', { name: 'Stop session' }));
    const dialog = within(await screen.findByRole('dialog'));
    expect(dialog.getByText('Files outside mounted folders are deleted.')).toBeTruthy();

    fireEvent.click(dialog.getByRole('button', { name: 'Stop session' }));
    await waitFor(() =>
      expect(shown.asked.find(each => each.path === '/api/sessions/terminate')?.body).toEqual({
        sessions: ['a'],
        force: false
      })
    );
    await waitFor(() =>
      expect(shown.host.notify).toHaveBeenCalledWith('success', '1 sessions are stopping.')
    );
  });
});

describe('the launch page', () => {
  const open = (address: string) =>
    showPage(<LaunchPage />, { answer: answer(), areas, address });

  test('keeps the form in its address', async () => {
    const { address } = await open('/launch?image=torch&slot=cpu=3&name=mine');
    const cpu = await screen.findByRole('textbox', { name: 'CPU' });
    expect((cpu as HTMLInputElement).value).toBe('3');

    fireEvent.change(cpu, { target: { value: '4' } });
    await waitFor(() => expect(address()).toContain('slot=cpu%3D4'));
    expect(address()).toContain('name=mine');
    expect(await violations()).toEqual([]);
  });

  test('leads to JupyterHub with the choice filled in', async () => {
    await open('/launch?name=mine');
    const link = await screen.findByRole('link', { name: 'Continue to start' });

    await waitFor(() => {
      const hash = new URL(link.getAttribute('href') ?? '', 'http://x/').hash.slice(1);
      const spec = JSON.parse(new URLSearchParams(hash).get('spec') ?? '{}') as {
        name: string;
      };
      expect(spec.name).toBe('mine');
    });
  });

  test('submits a batch job, once it says what to run, and remembers it', async () => {
    const { asked, host } = await open('/launch?type=batch');
    fireEvent.click(await screen.findByRole('button', { name: 'Submit job' }));
    await screen.findByText('Say what to run.');
    expect(asked.some(each => each.path === '/api/sessions' && each.method === 'POST')).toBe(
      false
    );

    const command = screen.getByRole('textbox', { name: 'Command' });
    fireEvent.change(command, { target: { value: 'python train.py' } });
    fireEvent.click(screen.getByRole('button', { name: 'Submit job' }));

    await waitFor(() => expect(host.open).toHaveBeenCalledWith('/sessions/new'));
    const sent = asked.find(each => each.path === '/api/sessions' && each.method === 'POST');
    expect(sent?.body).toMatchObject({ type: 'batch', startup_command: 'python train.py' });
    expect(localStorage.getItem('bai.launches:mina')).toContain('python train.py');
  });
});
