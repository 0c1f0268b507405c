// @vitest-environment happy-dom
import { act, cleanup, fireEvent, screen, waitFor, within } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { makeEvent, makeSession, makeShown, makeWhy } from '../testing';
import { showPage, type Asked } from '../testing-page';
import { applyToCache } from './live';
import { SessionPage } from './SessionPage';
import { SessionsPage } from './SessionsPage';

afterEach(cleanup);
vi.setConfig({ testTimeout: 30_000 });

const ME = { name: 'mina', domain: 'default', roles: ['user'], projects: ['vision'] };
const waits = makeSession({ id: 'a', name: 'train', status: 'PENDING', revision: 3 });

test('a row says where in the queue it stands before the stream tells anything', async () => {
  const at = '2026-01-02T03:00:00.000Z';
  const page = {
    items: [waits],
    next: null,
    places: { a: { position: 3, waiting: 9, at } }
  };
  const answer = ({ path }: Asked): unknown =>
    ({ '/api/me': ME, '/api/sessions': page })[path] ?? { items: [], next: null };
  const { client } = await showPage(<SessionsPage />, { answer, areas: ['work', 'launch'] });
  await screen.findByText('Number 3 in the queue');

  const later = makeWhy({ at: '2026-01-02T03:00:01.000Z', position: 1, waiting: 9 });
  act(() =>
    applyToCache(client, {
      seq: 9,
      at,
      kind: 'session.waiting',
      session_id: 'a',
      text: '',
      status: 'PENDING',
      folder_id: null,
      session: { ...waits, revision: 4 },
      why: later
    })
  );
  await screen.findByText('Number 1 in the queue');
  expect(screen.queryByText('Number 3 in the queue')).toBeNull();
});

test('a session is called something else, and what it cannot be called is said', async () => {
  const shown = makeShown({ id: 'a', name: 'train', status: 'RUNNING', revision: 3 });
  const answer = ({ path, method, body }: Asked): unknown => {
    if (method === 'PATCH') {
      return { ...shown, ...(body as object), revision: 4 };
    }
    return (
      { '/api/me': ME, '/api/sessions/a': shown, '/api/sessions/a/events': [] }[path] ?? {}
    );
  };
  const { asked } = await showPage(<SessionPage params={{ id: 'a' }} />, {
    answer,
    areas: ['work', 'launch']
  });
  fireEvent.click(await screen.findByRole('button', { name: 'More actions' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Rename…' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'Rename the session' }));
  const field = dialog.getByLabelText('Name');
  expect(dialog.getByText('This is its name already.')).toBeTruthy();

  fireEvent.change(field, { target: { value: 'a b' } });
  fireEvent.click(dialog.getByRole('button', { name: 'Save' }));
  expect(dialog.getByText(/^1 to 64 letters/)).toBeTruthy();
  fireEvent.change(field, { target: { value: 'second' } });
  fireEvent.click(dialog.getByRole('button', { name: 'Save' }));

  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  const sent = asked.filter(each => each.method === 'PATCH');
  expect(sent.map(each => [each.path, each.body])).toEqual([
    ['/api/sessions/a', { name: 'second' }]
  ]);
});

test('a session that waits again does not stand where it stood before', async () => {
  const at = '2026-01-02T03:00:00.000Z';
  const page = { items: [waits], next: null, places: { a: { position: 3, waiting: 9, at } } };
  let listed: unknown = page;
  const answer = ({ path }: Asked): unknown =>
    path === '/api/sessions' ? listed : path === '/api/me' ? ME : { items: [], next: null };
  const { client } = await showPage(<SessionsPage />, { answer, areas: ['work', 'launch'] });
  await screen.findByText('Number 3 in the queue');

  // The list is not told again before the stream says what happened.
  listed = new Promise(() => undefined);
  const next = (status: 'SCHEDULED' | 'PENDING', revision: number) =>
    act(() => applyToCache(client, makeEvent({ ...waits, status, revision })));
  next('SCHEDULED', 4);
  next('PENDING', 5);
  await waitFor(() => expect(screen.queryByText('Number 3 in the queue')).toBeNull());
  expect(screen.getByText('train')).toBeTruthy();
});

test('a name that is taken is said in the dialog, where it is heard', async () => {
  const shown = makeShown({ id: 'a', name: 'train', status: 'RUNNING', revision: 3 });
  const problem = { title: 'conflict', status: 409, detail: 'there is a session “second”' };
  const answer = ({ path, method }: Asked): unknown =>
    method === 'PATCH'
      ? Response.json(problem, { status: 409 })
      : ({ '/api/me': ME, '/api/sessions/a': shown, '/api/sessions/a/events': [] }[path] ?? {});
  const { host } = await showPage(<SessionPage params={{ id: 'a' }} />, {
    answer,
    areas: ['work', 'launch']
  });
  const begin = async (): Promise<ReturnType<typeof within>> => {
    fireEvent.click(await screen.findByRole('button', { name: 'More actions' }));
    fireEvent.click(await screen.findByRole('menuitem', { name: 'Rename…' }));
    return within(await screen.findByRole('dialog', { name: 'Rename the session' }));
  };
  const dialog = await begin();
  fireEvent.change(dialog.getByLabelText('Name'), { target: { value: 'second' } });
  fireEvent.click(dialog.getByRole('button', { name: 'Save' }));
  expect((await dialog.findByRole('alert')).textContent).toContain('second');
  expect(host.notify).not.toHaveBeenCalled();

  // It is gone with the dialog.
  fireEvent.click(dialog.getByRole('button', { name: 'Cancel' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect((await begin()).queryByRole('alert')).toBeNull();
});
