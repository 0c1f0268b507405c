// @vitest-environment happy-dom
import { cleanup, configure, fireEvent, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { leaveThen } from '../leaving';
import { showPage, type Answer, type Asked } from '../testing-page';
import { presets } from './of/presets';
import { NounPages } from './NounPages';

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
const PRESET = {
  id: 'p1',
  name: 'small',
  description: 'To try things',
  resource_slots: { cpu: '1', mem: '2g' },
  shared_memory: '0',
  resource_group: null,
  revision: 3,
  created_at: '2026-01-02T03:00:00Z',
  modified_at: '2026-01-02T03:00:00Z'
};
const EMPTY = { items: [], next: null };

/** The service, with one preset whose answers a test may change. */
function serve(own: Record<string, Answer> = {}): Answer {
  return asked => {
    const given = own[`${asked.method} ${asked.path}`];
    if (given) {
      return given(asked);
    }
    return { '/api/me': ROOT, '/api/presets/p1': PRESET }[asked.path] ?? EMPTY;
  };
}

const show = (params: Record<string, string>, answer: Answer, address = '/admin/presets') =>
  showPage(<NounPages noun={presets} params={params} />, { answer, areas: ['admin'], address });

const sent = (asked: Asked[], method: string): Asked[] =>
  asked.filter(each => each.method === method);

test('only what was changed is sent', async () => {
  const { asked, host } = await show(
    { id: 'p1', verb: 'edit' },
    serve({ 'PATCH /api/presets/p1': ({ body }) => ({ ...PRESET, ...(body as object) }) })
  );
  fireEvent.change(await screen.findByLabelText('Description'), {
    target: { value: 'For courses' }
  });

  fireEvent.click(screen.getByRole('button', { name: 'Save' }));

  await waitFor(() => expect(host.open).toHaveBeenCalledWith('/admin/presets/p1'));
  expect(sent(asked, 'PATCH').map(each => each.body)).toEqual([{ description: 'For courses' }]);
});

test('what is wrong is told before anything is sent', async () => {
  const { asked } = await show({ id: 'new' }, serve());

  fireEvent.click(await screen.findByRole('button', { name: 'Create' }));

  const alert = await screen.findByRole('alert');
  expect(alert.textContent).toContain('Name: This is needed');
  expect(alert.textContent).toContain('Amounts: This is needed');
  expect(sent(asked, 'POST')).toEqual([]);
});

test('what the service refuses stands at its field', async () => {
  const problem = {
    code: 'invalid-request',
    title: 'The request is not valid',
    detail: 'shared_memory: more than mem',
    fields: { errors: [{ field: 'shared_memory', message: 'shared_memory: more than mem' }] }
  };
  await show(
    { id: 'p1', verb: 'edit' },
    serve({ 'PATCH /api/presets/p1': () => Response.json(problem, { status: 422 }) })
  );
  const field = await screen.findByLabelText('Shared memory');
  fireEvent.change(field, { target: { value: '9g' } });

  fireEvent.click(screen.getByRole('button', { name: 'Save' }));

  await waitFor(() => expect(field.getAttribute('aria-invalid')).toBe('true'));
  expect(screen.getAllByText(/more than mem/).length).toBeGreaterThan(0);
});

test('two people at once are told both values, and mine goes over theirs if I say so', async () => {
  const now = { ...PRESET, description: 'Theirs', revision: 4 };
  let revisions = 0;
  const refused = {
    code: 'precondition-failed',
    title: 'Changed meanwhile',
    detail: 'somebody has changed it'
  };
  const { asked, host } = await show(
    { id: 'p1', verb: 'edit' },
    serve({
      'GET /api/presets/p1': () => (revisions ? now : PRESET),
      'PATCH /api/presets/p1': ({ body }) => {
        revisions += 1;
        return revisions === 1
          ? Response.json(refused, { status: 412 })
          : { ...now, ...(body as object), revision: 5 };
      }
    })
  );
  fireEvent.change(await screen.findByLabelText('Description'), { target: { value: 'Mine' } });
  fireEvent.click(screen.getByRole('button', { name: 'Save' }));
  const row = (await screen.findByRole('rowheader', { name: 'Description' })).closest('tr');
  expect(row?.textContent).toBe('DescriptionTheirsMine');

  fireEvent.click(screen.getByRole('button', { name: 'Keep my changes' }));
  fireEvent.click(screen.getByRole('button', { name: 'Save' }));

  await waitFor(() => expect(host.open).toHaveBeenCalledWith('/admin/presets/p1'));
  expect(sent(asked, 'PATCH').map(each => each.body)).toEqual([
    { description: 'Mine' },
    { description: 'Mine' }
  ]);
});

test('changes that are not saved are not left without a word', async () => {
  await show({ id: 'p1', verb: 'edit' }, serve());
  const left = vi.fn();
  const field = await screen.findByLabelText('Description');
  leaveThen(left);
  expect(left).toHaveBeenCalledTimes(1);

  fireEvent.change(field, { target: { value: 'Mine' } });
  await waitFor(() => {
    leaveThen(left);
    expect(screen.queryByText('Leave without saving?')).not.toBeNull();
  });
  expect(left).toHaveBeenCalledTimes(1);
  fireEvent.click(screen.getByRole('button', { name: 'Leave' }));

  expect(left).toHaveBeenCalledTimes(2);
});

test('an address may say what a new one begins with', async () => {
  await show({ id: 'new' }, serve(), '/admin/presets/new?name=large');

  const field: HTMLInputElement = await screen.findByLabelText(/^Name/);
  expect(field.value).toBe('large');
});

test('nobody makes or changes what is not theirs', async () => {
  await show({ id: 'new' }, serve({ 'GET /api/me': () => ({ ...ROOT, roles: ['monitor'] }) }));

  expect(await screen.findByText('This page is for administrators')).toBeDefined();
});
