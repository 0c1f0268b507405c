// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/react';
import axe from 'axe-core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { applyAnnouncement } from '../announced';
import { showPage, type Asked, type Shown } from '../testing-page';
import { AgentsPage } from './AgentsPage';

afterEach(cleanup);
beforeEach(() => localStorage.clear());

const node = {
  id: 'a1',
  name: 'gpu-01',
  status: 'ALIVE',
  schedulable: true,
  architecture: 'x86_64',
  version: '1.2.3',
  capacity: { cpu: '64', 'cuda.device': '8' },
  used: { cpu: '16', 'cuda.device': '8' },
  isolation: {
    runtime: 'docker',
    tier: 'containers',
    limits: 'cgroups',
    network: 'bridge',
    multi_user: true,
    notes: ['swap is on']
  },
  resource_group: 'gpus',
  last_seen_at: '2026-01-01T00:00:00.000Z',
  unknown_containers: ['lost-one'],
  labels: { rack: 'a1' },
  drain: null,
  sessions: 3
};
const drained = {
  ...node,
  id: 'a2',
  name: 'gpu-02',
  schedulable: false,
  unknown_containers: [],
  drain: { reason: 'new fans', by: 'root', since: '2026-01-01T00:00:00.000Z' }
};

const show = (role: string, address = '/nodes'): Promise<Shown> =>
  showPage(<AgentsPage />, {
    areas: ['nodes', 'admin', 'work'],
    address,
    answer: ({ path, query }) => {
      if (path === '/api/me') {
        return { name: 'root', roles: ['user', role], domain: 'default', projects: [] };
      }
      if (path === '/api/agents') {
        const last = query.has('after');
        return { items: last ? [drained] : [node], next: last ? null : 'more' };
      }
      return path.startsWith('/api/agents/') ? node : { items: [], next: null };
    }
  });

const lists = (asked: Asked[]): Asked[] => asked.filter(each => each.path === '/api/agents');

test('a row tells how a node is, how full, and what keeps people apart on it', async () => {
  localStorage.setItem('bai.columns.agents', '{"isolation":true,"runtime":true}');
  await show('monitor');
  const row = within((await screen.findByText('gpu-01')).closest('tr') as HTMLElement);
  for (const text of ['Ready', 'gpus', '16 of 64', '8 of 8', '3', 'docker', '1.2.3']) {
    expect(row.getByText(text)).toBeTruthy();
  }
  expect(row.getByText('containers · Several users')).toBeTruthy();
  expect(row.getByText('Containers this hub did not start: lost-one')).toBeTruthy();
  expect(row.getByRole('link', { name: 'gpu-01' }).getAttribute('href')).toBe('/nodes/a1');
  expect(
    (await axe.run(document.body, { rules: { region: { enabled: false } } })).violations.map(
      violation => violation.id
    )
  ).toEqual([]);
});

test('the service narrows, orders and pages it', async () => {
  const { asked } = await show(
    'superadmin',
    '/nodes?status=ALIVE&schedulable=false&runtime=docker&search=gpu&order=-last_seen_at'
  );
  await screen.findByText('gpu-01');
  const query = Object.fromEntries(lists(asked)[0]?.query ?? []);
  expect(query).toEqual({
    status: 'ALIVE',
    schedulable: 'false',
    runtime: 'docker',
    search: 'gpu',
    order: '-last_seen_at',
    limit: '20'
  });
  fireEvent.click(screen.getByRole('button', { name: 'Next' }));
  expect(await screen.findByText('gpu-02')).toBeTruthy();
  expect(lists(asked).at(-1)?.query.get('after')).toBe('more');
  expect(screen.getByText(/new fans/)).toBeTruthy();
});

test('who runs the site drains a node from its row, with a reason', async () => {
  const { asked } = await show('superadmin');
  await screen.findByText('gpu-01');
  fireEvent.click(await screen.findByRole('button', { name: 'Actions for gpu-01' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Drain' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'Drain gpu-01?' }));
  fireEvent.change(dialog.getByLabelText(/Reason/), { target: { value: 'new fans' } });
  const before = lists(asked).length;
  fireEvent.submit(dialog.getByLabelText(/Reason/).closest('form') as HTMLFormElement);
  await waitFor(() =>
    expect(asked.find(each => each.path === '/api/agents/a1/drain')?.body).toEqual({
      reason: 'new fans'
    })
  );
  // What it has changed is asked for again.
  await waitFor(() => expect(lists(asked).length).toBeGreaterThan(before));
});

test('a monitor is offered nothing that changes a node', async () => {
  await show('monitor');
  await screen.findByText('gpu-01');
  expect(screen.queryByRole('button', { name: 'Actions for gpu-01' })).toBeNull();
});

test.each(['nodes', 'resources'])('it follows what is announced of %s', async kind => {
  const { asked, client } = await show('monitor');
  await screen.findByText('gpu-01');
  const before = lists(asked).length;
  applyAnnouncement(client, ['usage']);
  applyAnnouncement(client, [kind]);
  await waitFor(() => expect(lists(asked).length).toBe(before + 1));
});
