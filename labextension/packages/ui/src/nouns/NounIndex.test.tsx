// @vitest-environment happy-dom
import { cleanup, configure, fireEvent, screen, waitFor, within } from '@testing-library/react';
import axe from 'axe-core';
import { afterEach, expect, test, vi } from 'vitest';
import { applyAnnouncement } from '../announced';
import { showPage, type Answer, type Asked } from '../testing-page';
import { NounPages } from './NounPages';
import { users } from './of/users';

afterEach(cleanup);
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 10_000 });

const ROOT = {
  name: 'root',
  roles: ['superadmin'],
  domain: 'default',
  project: '',
  projects: []
};
const ADA = {
  id: 'u1',
  name: 'ada',
  full_name: 'Ada',
  domain: 'lab',
  role: 'user',
  status: 'active',
  resource_policy: 'plain'
};
const BOB = { ...ADA, id: 'u2', name: 'bob', full_name: 'Bob' };

const serve =
  (bulk: Answer, me: object = ROOT): Answer =>
  asked =>
    asked.path === '/api/users/bulk'
      ? bulk(asked)
      : ({ '/api/me': me, '/api/users': { items: [ADA, BOB], next: null } }[asked.path] ?? {
          items: [],
          next: null
        });

const show = (answer: Answer, address = '/admin/users') =>
  showPage(<NounPages noun={users} params={{}} />, { answer, areas: ['admin'], address });

const bodies = (asked: Asked[]): unknown[] =>
  asked.filter(each => each.method === 'POST').map(each => each.body);

const good: Answer = () => ({ succeeded: 2, failed: 0, results: [{ index: 0 }, { index: 1 }] });

test('the tab and the filters in the address are asked of the service', async () => {
  const { asked } = await show(serve(good), '/admin/users?tab=inactive&role=monitor');

  await screen.findByText('ada');
  const list = asked.find(each => each.path === '/api/users');
  expect(list?.query.get('status')).toBe('inactive,before-verification,deleted');
  expect(list?.query.get('role')).toBe('monitor');
});

test('several are deactivated at once, and that can be undone', async () => {
  const { asked, host } = await show(serve(good));
  fireEvent.click(await screen.findByRole('checkbox', { name: /ada/ }));
  fireEvent.click(screen.getByRole('checkbox', { name: /bob/ }));

  fireEvent.click(screen.getByRole('button', { name: 'Deactivate' }));

  await waitFor(() => expect(host.notify).toHaveBeenCalled());
  const [level, text, undo] = vi.mocked(host.notify).mock.calls[0] ?? [];
  expect([level, text]).toEqual(['success', '2 users: inactive now']);
  undo?.();
  await waitFor(() => expect(bodies(asked)).toHaveLength(2));
  expect(bodies(asked)).toEqual(
    ['inactive', 'active'].map(status => ({
      update: ['u1', 'u2'].map(reference => ({ reference, fields: { status } }))
    }))
  );
});

test('those that did not work are told, with the reason', async () => {
  const some: Answer = () => ({
    succeeded: 1,
    failed: 1,
    results: [{ index: 0 }, { index: 1, error: 'bob is needed' }]
  });
  const { host } = await show(serve(some));
  fireEvent.click(await screen.findByRole('checkbox', { name: /ada/ }));
  fireEvent.click(screen.getByRole('checkbox', { name: /bob/ }));

  fireEvent.click(screen.getByRole('button', { name: 'Deactivate' }));

  await waitFor(() =>
    expect(host.notify).toHaveBeenCalledWith('error', '1 of 2 did not work: bob is needed')
  );
});

test('several fields of several are changed at once, and each is told how it ended', async () => {
  const some: Answer = () => ({
    succeeded: 1,
    failed: 1,
    results: [{ index: 0 }, { index: 1, error: 'bob is needed' }]
  });
  const { asked } = await show(serve(some));
  fireEvent.click(await screen.findByRole('checkbox', { name: /ada/ }));
  fireEvent.click(screen.getByRole('checkbox', { name: /bob/ }));
  fireEvent.click(screen.getByRole('button', { name: 'Change fields…' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'Change 2 users' }));
  expect(dialog.getByText('Choose what shall be changed')).toBeDefined();

  fireEvent.click(dialog.getByRole('checkbox', { name: 'Change “Role”' }));
  fireEvent.change(dialog.getByLabelText('Role'), { target: { value: 'monitor' } });
  fireEvent.click(dialog.getByRole('checkbox', { name: 'Change “Description”' }));
  fireEvent.change(dialog.getByLabelText('Description'), { target: { value: 'Guests' } });
  fireEvent.click(dialog.getByRole('button', { name: 'Change' }));

  const told = within(await screen.findByRole('dialog', { name: '1 changed, 1 not' }));
  const rows = told.getAllByRole('row').map(row => row.textContent);
  expect(rows.slice(1)).toEqual(['adaResultChanged', 'bobResultNot changedbob is needed']);
  expect(bodies(asked)).toEqual([
    {
      update: ['u1', 'u2'].map(reference => ({
        reference,
        fields: { role: 'monitor', description: 'Guests' }
      }))
    }
  ]);
});

test('what cannot be undone needs its name', async () => {
  const gone = { ...ADA, status: 'inactive' };
  const answer = serve(good);
  const { asked } = await show(each =>
    each.path === '/api/users' ? { items: [gone, BOB], next: null } : answer(each)
  );
  fireEvent.click(await screen.findByRole('button', { name: 'Actions for bob' }));
  expect(screen.queryByRole('menuitem', { name: 'Delete for good' })).toBeNull();
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Deactivate' }));
  await waitFor(() => expect(screen.queryByRole('menuitem')).toBeNull());
  fireEvent.click(await screen.findByRole('button', { name: 'Actions for ada' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Delete for good' }));
  const field = await screen.findByLabelText('Type ada to confirm');

  fireEvent.change(field, { target: { value: 'bob' } });
  fireEvent.click(screen.getByRole('button', { name: 'Delete for good' }));
  expect(JSON.stringify(bodies(asked))).not.toContain('purge');
  fireEvent.change(field, { target: { value: 'ada' } });
  fireEvent.click(screen.getByRole('button', { name: 'Delete for good' }));

  await waitFor(() => expect(bodies(asked).at(-1)).toEqual({ purge: ['u1'] }));
});

test('who may only look is offered nothing else', async () => {
  await show(serve(good, { ...ROOT, roles: ['monitor'] }));

  await screen.findByText('ada');
  expect(screen.queryByRole('button', { name: 'New user' })).toBeNull();
  expect(screen.queryByRole('button', { name: 'Actions for ada' })).toBeNull();
  expect(screen.queryByRole('checkbox')).toBeNull();
});

test('the page has no faults that a program can find', async () => {
  await show(serve(good));
  await screen.findByText('ada');

  const { violations } = await axe.run(document.body, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'],
    rules: { 'color-contrast': { enabled: false } }
  });
  expect(violations.map(violation => violation.id)).toEqual([]);
});

test('what another administrator does is seen, and what was chosen stays chosen', async () => {
  let items = [ADA, BOB];
  const { client } = await show(asked =>
    asked.path === '/api/users' ? { items, next: null } : serve(good)(asked)
  );
  fireEvent.click(await screen.findByRole('checkbox', { name: /ada/ }));

  items = [ADA, { ...BOB, full_name: 'Robert' }];
  applyAnnouncement(client, ['users']);

  await screen.findByText('Robert');
  expect(screen.getByRole('checkbox', { name: /ada/, checked: true })).toBeTruthy();
});

const DEAN = { ...ROOT, name: 'dean', roles: ['domain-admin'] };
const CHIEF = { ...ADA, id: 'u3', name: 'chief', role: 'superadmin' };

test('domain admins are not offered what only superadmins do', async () => {
  const answer: Answer = ({ path }) =>
    ({ '/api/me': DEAN, '/api/users': { items: [ADA, CHIEF], next: null } })[path] ?? {
      items: [],
      next: null
    };
  await show(answer);

  await screen.findByRole('button', { name: 'Actions for ada' });
  expect(screen.queryByRole('button', { name: 'Actions for chief' })).toBeNull();
  fireEvent.click(screen.getByRole('checkbox', { name: /chief/ }));
  expect(screen.queryByRole('button', { name: 'Delete for good' })).toBeNull();
  for (const name of ['Deactivate', 'Change fields…']) {
    expect(screen.getByRole('button', { name }).getAttribute('aria-disabled')).toBe('true');
  }
});

test.each([
  ['chief', CHIEF, ['Superadmin', 'User', 'Domain admin'], null],
  ['ada', ADA, ['User', 'Domain admin'], 'Edit']
])('domain admins find of %s what is theirs to change', async (name, row, roles, edit) => {
  const answer: Answer = ({ path }) =>
    ({
      '/api/me': DEAN,
      [`/api/users/${row.id}`]: row,
      [`/api/accounts/${name}/state`]: { must_change: false, locked: false }
    })[path] ?? { items: [], next: null };
  await showPage(<NounPages noun={users} params={{ id: row.id }} />, {
    answer,
    areas: ['admin']
  });
  await screen.findByRole('heading', { name });
  // Policies have no page for those who only run a domain.
  await screen.findByRole('link', { name: 'lab' });
  expect(screen.queryByRole('link', { name: 'plain' })).toBeNull();
  expect(screen.queryByRole('button', { name: 'Edit' })?.textContent ?? null).toBe(edit);
  const touched = screen.queryByRole('button', { name: 'New one-time password' }) !== null;
  expect(touched).toBe(edit !== null);

  cleanup();
  await showPage(<NounPages noun={users} params={{ id: row.id, verb: 'edit' }} />, {
    answer,
    areas: ['admin']
  });
  const choice = await screen.findByLabelText('Role');
  await waitFor(() =>
    expect(
      within(choice)
        .getAllByRole('option')
        .map(each => each.textContent)
    ).toEqual(roles)
  );
});
