// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/react';
import { afterEach, describe, expect, test } from 'vitest';
import { makeStorage, MINA } from './data/serving';
import type { Folder } from './data/types';
import { FoldersPage } from './data/folders/FoldersPage';
import QueuePage from './scheduler/QueuePage';
import { SessionPage } from './sessions/SessionPage';
import { makeFolder, makeShown } from './testing';
import { showPage, type Asked } from './testing-page';

afterEach(cleanup);

/** A service that says nothing before it is told what to say. */
function hesitate() {
  let say: (answer: unknown) => void = () => undefined;
  const answer = new Promise<unknown>(resolve => (say = resolve));
  return { answer, say: (given: unknown) => say(given) };
}

const refuse = (detail: string): Response =>
  Response.json({ title: 'refused', detail, code: 'conflict' }, { status: 409 });

const ROOT = { name: 'root', roles: ['superadmin'], domain: 'default', projects: [] };
const NOTHING = { items: [], next: null };

describe('a session that waits', () => {
  const session = makeShown({ status: 'PENDING', reason: 'no room', owner: 'root' });

  async function open() {
    const { answer, say } = hesitate();
    await showPage(<SessionPage params={{ id: session.id }} />, {
      areas: ['work', 'launch'],
      answer: ({ method, path }: Asked) => {
        if (path === '/api/me') {
          return ROOT;
        }
        if (method !== 'GET') {
          return answer;
        }
        return path.endsWith('/events') ? [] : session;
      }
    });
    await screen.findByRole('heading', { level: 1, name: session.name });
    fireEvent.click(screen.getByRole('button', { name: /More|Actions/ }));
    return { say };
  }

  async function rename(): Promise<void> {
    fireEvent.click(await screen.findByRole('menuitem', { name: /Rename/ }));
    const dialog = within(await screen.findByRole('dialog'));
    fireEvent.change(dialog.getByLabelText(/^Name/), { target: { value: 'train-2' } });
    fireEvent.click(dialog.getByRole('button', { name: 'Save' }));
  }

  test('has its new name before the service has answered', async () => {
    const { say } = await open();
    await rename();

    await waitFor(() => expect(document.querySelector('h1')?.textContent).toBe('train-2'));
    say({ ...session, name: 'train-2', revision: 2 });
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  });

  test('has its old name again when that was refused, and the dialog says why', async () => {
    const { say } = await open();
    await rename();
    await waitFor(() => expect(document.querySelector('h1')?.textContent).toBe('train-2'));

    say(refuse('train-2 is another session'));

    expect(await screen.findByText('train-2 is another session')).toBeTruthy();
    await waitFor(() => expect(document.querySelector('h1')?.textContent).toBe(session.name));
  });
});

describe('who waits in a queue', () => {
  const entry = {
    id: 's1',
    name: 'train',
    owner: 'mina',
    project: 'vision',
    position: 1,
    priority: 10,
    waited: 5,
    reason: 'held by admin since 2026-01-02 03:00 UTC: lunch'
  };

  async function open() {
    const { answer, say } = hesitate();
    const shown = await showPage(<QueuePage />, {
      areas: ['admin'],
      answer: ({ method, path }: Asked) => {
        if (path === '/api/me') {
          return ROOT;
        }
        if (method !== 'GET') {
          return answer;
        }
        return path.endsWith('/queue')
          ? { ...NOTHING, resource_group: 'gpu', items: [entry], length: 1, freeze: null }
          : {
              ...NOTHING,
              items: [{ id: 'g', name: 'gpu', is_default: true, is_active: true }]
            };
      }
    });
    const row = await screen.findByRole('row', { name: /train/ });
    fireEvent.click(within(row).getByRole('checkbox'));
    return { say, row, notify: shown.host.notify };
  }

  test('is let go at once, and held again when that was refused', async () => {
    const { say, row, notify } = await open();
    fireEvent.click(screen.getByRole('button', { name: 'Release' }));

    await waitFor(() => expect(row.textContent).not.toContain('lunch'));
    say(refuse('only its owner may'));

    await waitFor(() => expect(row.textContent).toContain('lunch'));
    expect(notify).toHaveBeenCalledWith('error', 'only its owner may');
  });

  test('has another priority at once', async () => {
    const { say, row } = await open();
    fireEvent.click(screen.getByRole('button', { name: 'Set priority' }));
    const dialog = within(await screen.findByRole('dialog'));
    fireEvent.change(dialog.getByLabelText(/^Priority/), { target: { value: '77' } });
    fireEvent.click(dialog.getByRole('button', { name: 'Set priority' }));

    await waitFor(() => expect(row.textContent).toContain('77'));
    say(refuse('not today'));
    await waitFor(() => expect(row.textContent).not.toContain('77'));
  });
});

describe('a folder', () => {
  async function open(address: string, folder: Partial<Folder>) {
    const { answer, say } = hesitate();
    const shown = await showPage(<FoldersPage />, {
      areas: ['data'],
      address,
      answer: ({ method, path }: Asked) => {
        const answers: Record<string, unknown> = {
          '/api/me': MINA,
          '/api/storage-hosts': [makeStorage()],
          '/api/invitations': [],
          '/api/folders': { ...NOTHING, items: [makeFolder('data', folder)] }
        };
        return method === 'GET' ? (answers[path] ?? NOTHING) : answer;
      }
    });
    await screen.findByRole('link', { name: 'data' });
    fireEvent.click(screen.getByRole('button', { name: 'Actions for data' }));
    return { say, notify: shown.host.notify };
  }

  const gone = (): Promise<void> =>
    waitFor(() => expect(screen.queryByRole('link', { name: 'data' })).toBeNull());

  test('is off its shelf at once, and back when it may not be thrown away', async () => {
    const { say, notify } = await open('/data', {});
    fireEvent.click(await screen.findByRole('menuitem', { name: 'Move to the trash' }));

    await gone();
    const error = 'data is in use by session train';
    say({
      succeeded: 0,
      failed: 1,
      results: [{ reference: 'id-of-data', status: 409, error }]
    });

    await screen.findByRole('link', { name: 'data' });
    expect(notify).toHaveBeenCalledWith('error', expect.stringContaining(error));
  });

  test('is out of the trash at once, and back when the service is not there', async () => {
    const { say } = await open('/data?tab=trash', {
      status: 'delete-pending',
      trashed_at: '2026-01-02T03:00:00Z'
    });
    fireEvent.click(await screen.findByRole('menuitem', { name: 'Restore' }));

    await gone();
    say(new Response('', { status: 503 }));

    await screen.findByRole('link', { name: 'data' });
  });
});
