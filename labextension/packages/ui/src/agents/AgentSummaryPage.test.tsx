// @vitest-environment happy-dom
import { cleanup, screen } from '@testing-library/react';
import axe from 'axe-core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PAGES } from '../pages';
import { showPage } from '../testing-page';
import { makeResources } from '../testing';
import AgentSummaryPage from './AgentSummaryPage';

afterEach(cleanup);
beforeEach(() => localStorage.clear());

const node = {
  name: 'gpu-01',
  status: 'ALIVE',
  resource_group: 'gpus',
  architecture: 'x86_64',
  schedulable: false,
  capacity: { cpu: '64', 'cuda.device': '8' },
  used: { cpu: '16', 'cuda.device': '8' }
};

test('it shows how full the nodes of one’s groups are, and which take nothing new', async () => {
  const asked: string[] = [];
  showPage(<AgentSummaryPage />, {
    areas: ['nodes'],
    address: '/agent-summary?status=ALIVE&search=gpu',
    answer: ({ path, query }) => {
      if (path === '/api/agent-summaries') {
        asked.push(query.toString());
        return { items: [node], next: null };
      }
      return makeResources({ resource_groups: ['gpus'] });
    }
  });
  expect(await screen.findByText('gpu-01')).toBeTruthy();
  expect(screen.getByText('Takes no new sessions')).toBeTruthy();
  expect(screen.getByText('16 of 64')).toBeTruthy();
  expect(screen.getByText('8 of 8')).toBeTruthy();
  expect(asked[0]).toContain('status=ALIVE');
  expect(asked[0]).toContain('search=gpu');
  expect(
    (await axe.run(document.body, { rules: { region: { enabled: false } } })).violations.map(
      v => v.id
    )
  ).toEqual([]);
});

test('who has no fuller page finds it, unless nodes are hidden', () => {
  const page = PAGES.find(({ path }) => path === '/agent-summary');
  const me = { name: 'mina', domain: 'd', project: 'p', projects: [], sees_agents: true };
  expect(page?.admits?.({ ...me, roles: ['user'] })).toBe(true);
  expect(page?.admits?.({ ...me, roles: ['user'], sees_agents: false })).toBe(false);
  expect(page?.admits?.({ ...me, roles: ['user', 'superadmin'] })).toBe(false);
});
