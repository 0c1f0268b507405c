// @vitest-environment happy-dom
import { cleanup, fireEvent, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { showPage } from '../testing-page';
import QueuePage from './QueuePage';

afterEach(cleanup);

const ROOT = { name: 'root', roles: ['superadmin'], domain: 'default', projects: [] };
const GROUPS = [{ id: 'g', name: 'gpu', is_default: true, is_active: true }];

const show = (fault: string): Promise<unknown> =>
  showPage(<QueuePage />, {
    areas: ['admin'],
    answer: ({ path }) => {
      if (path === '/api/me') {
        return ROOT;
      }
      return path.endsWith('/queue')
        ? { resource_group: 'gpu', items: [], next: null, length: 0, freeze: null, fault }
        : { items: GROUPS, next: null };
    }
  });

test('what is wrong with a policy of another package is told above the queue', async () => {
  await show("the placement 'nvme' took too long: nodes are chosen by 'dispersed'");

  const told = await screen.findByText(/the placement 'nvme' took too long/);

  expect(told.getAttribute('lang')).toBe('en');
  expect(told.closest('[role=status]')?.textContent).toContain('plugin of gpu');
});

test('nothing is told where policies do what they should', async () => {
  await show('');

  await screen.findByText('Nobody waits');

  expect(screen.queryByText(/plugin of/)).toBeNull();
});

test('resource groups that cannot be read are told, and asked for again', async () => {
  let broken = true;
  const groups = (): unknown =>
    broken
      ? Response.json({ detail: 'out of order' }, { status: 400 })
      : { items: [], next: null };
  await showPage(<QueuePage />, {
    areas: ['admin'],
    answer: ({ path }) => (path === '/api/me' ? ROOT : groups())
  });
  await screen.findByText('out of order');
  expect(screen.queryByRole('status', { name: 'Loading…' })).toBeNull();

  broken = false;
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  await screen.findByText('No resource groups here');
});
