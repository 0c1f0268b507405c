// @vitest-environment happy-dom
import { notifyManager, QueryClientProvider } from '@tanstack/react-query';
import {
  act,
  cleanup,
  configure,
  fireEvent,
  render,
  screen,
  waitFor,
  within
} from '@testing-library/react';
import axe from 'axe-core';
import { I18nextProvider } from 'react-i18next';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { HostProvider } from '../../host';
import { createTranslator } from '../../i18n';
import { leaveThen } from '../../leaving';
import { createQueryClient } from '../../queries';
import { makeFolder } from '../../testing';
import { makeEntry, makeStorage, MINA, serve, type Asked } from '../serving';
import type { FileEntry, Folder } from '../types';
import { Explorer } from './Explorer';

afterEach(cleanup);
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 10_000 });
notifyManager.setScheduler(queueMicrotask);

/** A folder with these entries, paged as the service pages them. */
function shelve(entries: FileEntry[], answers: Record<string, (asked: Asked) => unknown> = {}) {
  return serve({
    'GET /api/me': () => MINA,
    'GET /api/storage-hosts': () => [makeStorage()],
    'GET /api/folder-tasks': () => ({ items: [], next: null }),
    'GET /api/folders/id-of-data/entries': ({ query }) => {
      const start = Number(query.after ?? '0');
      const limit = Number(query.limit);
      const end = start + limit;
      return {
        items: entries.slice(start, end),
        total: entries.length,
        next: end < entries.length ? String(end) : null
      };
    },
    ...answers
  });
}

async function open(
  service: ReturnType<typeof shelve>,
  folder: Folder = makeFolder('data'),
  at = `/data/${folder.id}`
) {
  const [path = '', search = ''] = at.split('?');
  const { hook, searchHook } = memoryLocation({ path, searchPath: search });
  const { container } = render(
    <I18nextProvider i18n={await createTranslator('en', ['data'])}>
      <QueryClientProvider client={createQueryClient()}>
        <HostProvider value={service.host}>
          <Router hook={hook} searchHook={searchHook}>
            <main>
              <Explorer folder={folder} />
            </main>
          </Router>
        </HostProvider>
      </QueryClientProvider>
    </I18nextProvider>
  );
  return container;
}

const many = (count: number): FileEntry[] =>
  Array.from({ length: count }, (_, at) => makeEntry(`${String(at).padStart(5, '0')}.txt`));

const select = (name: string): HTMLElement =>
  screen.getByRole('checkbox', { name: `Select ${name}` });

describe('ten thousand files', () => {
  test('are counted, and those in sight are there', async () => {
    const service = shelve(many(10_000));

    await open(service);

    const table = await screen.findByRole('table', { name: 'Files in data' });
    expect(table.getAttribute('aria-rowcount')).toBe('10001');
    expect(screen.getByText('Entries: 10000')).toBeTruthy();
    expect(within(table).getAllByRole('rowheader').length).toBeLessThan(80);
    // The first page alone is asked for, until somebody goes there.
    expect(service.asked.filter(one => one.path.endsWith('/entries'))).toHaveLength(1);
  });

  test('are walked with the arrow keys', async () => {
    await open(shelve(many(100)));
    const first = await screen.findByRole('link', { name: '00000.txt' });

    first.focus();
    fireEvent.keyDown(first, { key: 'ArrowDown' });
    expect(document.activeElement?.textContent).toBe('00001.txt');
    fireEvent.keyDown(document.activeElement ?? first, { key: 'ArrowUp' });

    expect(document.activeElement).toBe(first);
  });
});

describe('what is selected', () => {
  test('is done something to all at once, and comes back', async () => {
    const ids = ['t1', 't2'];
    const service = shelve([makeEntry('a'), makeEntry('b'), makeEntry('c')], {
      'POST /api/folders/id-of-data/entries/trash': () => ({
        succeeded: 2,
        failed: 0,
        results: ids.map(id => ({ path: id, status: 200, id, error: null, code: null }))
      }),
      'POST /api/folders/id-of-data/trashed/restore': () => ({
        succeeded: 2,
        failed: 0,
        results: []
      })
    });
    await open(service);
    await screen.findByRole('link', { name: 'a' });

    fireEvent.click(select('a'));
    fireEvent.click(select('b'), { shiftKey: true });
    const bar = screen.getByRole('region', { name: 'With what is selected' });
    expect(bar.textContent).toContain('Selected: 2 · 10 B');
    fireEvent.click(within(bar).getByRole('button', { name: 'Move to the trash' }));

    await waitFor(() => expect(service.told).toHaveLength(1));
    const trashed = service.asked.find(one => one.path.endsWith('/entries/trash'));
    expect(trashed?.body).toEqual({ paths: ['a', 'b'] });
    expect(service.told[0]?.text).toBe('Moved to the trash: 2');
    act(() => service.told[0]?.undo?.());
    await waitFor(() => expect(service.told).toHaveLength(2));
    expect(service.asked.find(one => one.path.endsWith('/restore'))?.body).toMatchObject({
      ids
    });
  });

  test('is all there is, or nothing', async () => {
    await open(shelve([makeEntry('a'), makeEntry('b')]));
    await screen.findByRole('link', { name: 'a' });

    fireEvent.click(screen.getByRole('checkbox', { name: 'Select all' }));
    expect(screen.getByText(/Selected: 2/)).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'Select nothing' }));

    expect(screen.queryByText(/Selected/)).toBeNull();
  });
});

describe('who may only read', () => {
  const shared = makeFolder('data', { access: 'ro', is_owner: false, user: 'grace' });

  test('is told why the rest is not possible', async () => {
    const service = shelve([makeEntry('a')]);
    await open(service, shared);
    const upload = await screen.findByRole('button', { name: 'Upload' });

    expect(upload.getAttribute('aria-disabled')).toBe('true');
    fireEvent.click(upload);

    expect(service.told[0]?.text).toContain('read-only for you');
    const id = upload.getAttribute('aria-describedby') ?? '';
    expect(document.getElementById(id)?.textContent).toContain('read-only for you');
  });

  test('sees that nothing can be dropped', async () => {
    await open(shelve([makeEntry('a')]), shared);
    const table = await screen.findByRole('table');

    fireEvent.dragEnter(table, { dataTransfer: { types: ['Files'] } });

    expect(screen.getAllByText(/read-only for you/).length).toBeGreaterThan(0);
  });
});

test('an administrator does not look into what is somebody else’s', async () => {
  const service = shelve([]);

  await open(service, makeFolder('data', { access: null, is_owner: false, user: 'grace' }));

  await screen.findByText('Not to be looked into');
  expect(service.asked.some(one => one.path.endsWith('/entries'))).toBe(false);
  expect(screen.getByRole('tab', { name: 'Sharing' })).toBeTruthy();
  expect(screen.queryByRole('tab', { name: 'Trash' })).toBeNull();
});

test('a name is changed where it stands', async () => {
  const service = shelve([makeEntry('notes.md')], {
    'POST /api/folders/id-of-data/move': () => ({ path: 'in/new.md' })
  });
  await open(service, makeFolder('data'), '/data/id-of-data?path=in');
  fireEvent.click(await screen.findByRole('button', { name: 'Actions for notes.md' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Rename' }));
  const field = await screen.findByLabelText('New name of notes.md');

  fireEvent.change(field, { target: { value: 'a/b' } });
  expect(screen.getByText('A name has no “/”.')).toBeTruthy();
  fireEvent.change(field, { target: { value: 'new.md' } });
  fireEvent.submit(field);

  await waitFor(() =>
    expect(service.asked.find(one => one.path.endsWith('/move'))?.body).toEqual({
      path: 'in/notes.md',
      target: 'in/new.md',
      conflict: 'fail'
    })
  );
});

test('of several files, those that are moved already are not moved once more', async () => {
  const taken = { title: 'taken', detail: 'b: that name is taken' };
  const service = shelve(
    [makeEntry('a'), makeEntry('b'), makeEntry('in', { kind: 'folder' })],
    {
      'POST /api/folders/id-of-data/move': ({ body }) => {
        const { path, conflict } = body as { path: string; conflict: string };
        const clashes = path === 'b' && conflict === 'fail';
        return clashes ? Response.json(taken, { status: 409 }) : { path: `in/${path}` };
      }
    }
  );
  await open(service);
  await screen.findByRole('link', { name: 'a' });
  fireEvent.click(select('a'));
  fireEvent.click(select('b'));
  const bar = screen.getByRole('region', { name: 'With what is selected' });
  fireEvent.click(within(bar).getByRole('button', { name: 'Move' }));
  const dialog = await screen.findByRole('dialog', { name: 'Move to (entries: 2)' });
  fireEvent.click(await within(dialog).findByText('in'));
  fireEvent.click(within(dialog).getByRole('button', { name: 'Move' }));

  await screen.findByRole('dialog', { name: 'Move to (entries: 1)' });
  fireEvent.change(within(dialog).getByLabelText('Where the name is taken'), {
    target: { value: 'rename' }
  });
  fireEvent.click(within(dialog).getByRole('button', { name: 'Move' }));

  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  const moved = service.asked.filter(one => one.path.endsWith('/move'));
  expect(moved.map(one => (one.body as { path: string }).path)).toEqual(['a', 'b', 'b']);
});

test('names are text, whatever they look like', async () => {
  const evil = '<img src=x onerror=alert(1)>';

  const page = await open(shelve([makeEntry(evil), makeEntry('x', { kind: 'folder' })]));

  await screen.findByRole('link', { name: evil });
  expect(page.querySelector('img')).toBeNull();
});

test('a name with signs of addresses in it is the one that is looked at', async () => {
  const name = 'a%3D1&b?#+.bin';
  const service = shelve([makeEntry(name)], {
    'GET /api/folders/id-of-data/entry': ({ query }) => makeEntry(query.path ?? '')
  });

  const query = new URLSearchParams({ path: '100%25', show: name }).toString();
  await open(service, makeFolder('data'), `/data/id-of-data?${query}`);

  await screen.findByRole('heading', { name });
  const asked = service.asked.find(one => one.path.endsWith('/entry'));
  expect(asked?.query.path).toBe(`100%25/${name}`);
});

test('text that is not saved is not lost without a word', async () => {
  const service = shelve([makeEntry('a.txt')], {
    'GET /api/folders/id-of-data/entry': () => makeEntry('a.txt'),
    'GET /api/folders/id-of-data/text': () => ({ text: 'old', tag: 't1' })
  });
  await open(service, makeFolder('data'), '/data/id-of-data?show=a.txt');
  fireEvent.click(await screen.findByRole('button', { name: 'Edit' }));
  const content = await screen.findByLabelText('Content');
  const left = vi.fn();

  fireEvent.change(content, { target: { value: 'new' } });
  leaveThen(left);
  fireEvent.click(await screen.findByRole('button', { name: 'Stay here' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  fireEvent.click(screen.getByRole('button', { name: 'Cancel' }));
  await screen.findByText('Leave without saving?');
  expect((content as HTMLTextAreaElement).value).toBe('new');
  fireEvent.click(screen.getByRole('button', { name: 'Leave' }));

  await waitFor(() => expect(screen.queryByLabelText('Content')).toBeNull());
  leaveThen(left);
  expect(left).toHaveBeenCalledTimes(1);
});

test('nobody is kept out of it', async () => {
  const page = await open(shelve([makeEntry('a.png'), makeEntry('b', { kind: 'folder' })]));
  await screen.findByRole('link', { name: 'a.png' });
  fireEvent.click(select('b'));

  // What is drawn nowhere has no colours to judge.
  const { violations } = await axe.run(page, {
    rules: { 'color-contrast': { enabled: false } }
  });

  expect(violations.map(each => each.id)).toEqual([]);
});
