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
import { createQueryClient } from '../../queries';
import { makeFolder } from '../../testing';
import { makeStorage, MINA, serve, type Asked } from '../serving';
import type { Folder } from '../types';
import { FoldersPage } from './FoldersPage';

afterEach(cleanup);
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 10_000 });
notifyManager.setScheduler(queueMicrotask);

/** A service that keeps these folders, and finds them as it does. */
function shelve(folders: Folder[], answers: Record<string, (asked: Asked) => unknown> = {}) {
  return serve({
    'GET /api/me': () => MINA,
    'GET /api/users/mina': () => ({ resource_policy: 'default' }),
    'GET /api/user-policies/default': () => ({ max_vfolder_count: 4 }),
    'GET /api/storage-hosts': () => [makeStorage()],
    'GET /api/quota-scopes': () => ({
      items: [
        {
          host: 'local',
          scope: 'user-1',
          kind: 'user',
          owner: 'mina',
          owner_id: '1',
          used_bytes: 3 * 2 ** 30,
          used_files: 7,
          reserved_bytes: 0,
          limit_bytes: 4 * 2 ** 30,
          limit_files: null,
          limit_from: 'policy',
          folders: 3
        }
      ],
      next: null
    }),
    'GET /api/folder-tasks': () => ({ items: [], next: null }),
    'GET /api/invitations': () => [],
    'GET /api/folders': ({ query }) => ({
      items: folders.filter(
        ({ status, name, usage_mode: mode }) =>
          query.status?.split(',').includes(status) &&
          name.includes(query.search ?? '') &&
          (!query.usage_mode || query.usage_mode === mode)
      ),
      next: null
    }),
    ...answers
  });
}

async function open(service: ReturnType<typeof shelve>, search = '') {
  const { hook, searchHook } = memoryLocation({ path: '/data', searchPath: search });
  const { container } = render(
    <I18nextProvider i18n={await createTranslator('en', ['data'])}>
      <QueryClientProvider client={createQueryClient()}>
        <HostProvider value={service.host}>
          <Router hook={hook} searchHook={searchHook}>
            <main>
              <FoldersPage />
            </main>
          </Router>
        </HostProvider>
      </QueryClientProvider>
    </I18nextProvider>
  );
  return container;
}

const name = (text: string): Promise<HTMLElement> => screen.findByRole('link', { name: text });

describe('the list', () => {
  test('has what is in use, and how much may be kept', async () => {
    const page = await open(
      shelve([makeFolder('data'), makeFolder('old', { status: 'delete-pending' })])
    );

    await name('data');
    expect(screen.queryByRole('link', { name: 'old' })).toBeNull();
    const made = await screen.findByRole('meter', { name: 'Created' });
    expect(made.getAttribute('aria-valuetext')).toBe('3 of 4');
    expect(screen.getByRole('meter', { name: 'Yours' }).getAttribute('aria-valuetext')).toBe(
      '3 GiB of 4 GiB'
    );
    const rules = { 'color-contrast': { enabled: false } };
    expect((await axe.run(page, { rules })).violations.map(each => each.id)).toEqual([]);
  });

  test('tells monitors of others’ folders alone', async () => {
    const theirs = makeFolder('data', { is_owner: false, access: null });
    await open(shelve([theirs], { 'GET /api/me': () => ({ ...MINA, roles: ['monitor'] }) }));

    await name('data');
    expect(screen.queryByText('My folders')).toBeNull();
    expect(screen.queryByRole('button', { name: 'Actions for data' })).toBeNull();
  });

  test('of those that come by themselves has no others', async () => {
    const folders = [makeFolder('.cache'), makeFolder('v1.2'), makeFolder('data')];

    await open(shelve(folders), 'mode=automatic');

    await name('.cache');
    expect(screen.queryByRole('link', { name: 'v1.2' })).toBeNull();
  });
});

describe('what is thrown away', () => {
  test('is taken back at once', async () => {
    const outcome = { succeeded: 1, failed: 0 };
    const result = { reference: 'id-of-data', status: 200, error: null };
    const service = shelve([makeFolder('data')], {
      'POST /api/folders/trash': () => ({ ...outcome, results: [result] }),
      'POST /api/folders/restore': () => ({ ...outcome, results: [result] })
    });
    await open(service);
    await name('data');

    fireEvent.click(screen.getByRole('button', { name: 'Actions for data' }));
    fireEvent.click(await screen.findByRole('menuitem', { name: 'Move to the trash' }));
    await waitFor(() => expect(service.told[0]?.text).toBe('Folders moved to the trash: 1'));
    act(() => service.told[0]?.undo?.());

    await waitFor(() =>
      expect(service.asked.find(one => one.path.endsWith('/restore'))?.body).toEqual({
        folders: ['id-of-data']
      })
    );
  });

  test('goes for good only by its typed name', async () => {
    const thrown = makeFolder('old', {
      status: 'delete-pending',
      trashed_at: '2026-01-02T03:00:00Z'
    });
    const service = shelve([thrown], {
      'POST /api/folders/purge': () => ({
        succeeded: 1,
        failed: 0,
        results: [{ reference: 'id-of-old', status: 200, error: null }]
      })
    });
    await open(service, 'tab=trash');
    await name('old');
    fireEvent.click(screen.getByRole('button', { name: 'Actions for old' }));
    fireEvent.click(await screen.findByRole('menuitem', { name: 'Delete forever' }));
    const dialog = within(await screen.findByRole('dialog'));

    fireEvent.click(dialog.getByRole('button', { name: 'Delete forever' }));
    expect(service.asked.some(one => one.path.endsWith('/purge'))).toBe(false);
    fireEvent.change(dialog.getByLabelText('Type “old” to confirm'), {
      target: { value: 'old' }
    });
    fireEvent.click(dialog.getByRole('button', { name: 'Delete forever' }));

    await waitFor(() =>
      expect(service.asked.find(one => one.path.endsWith('/purge'))?.body).toEqual({
        folders: [{ folder: 'id-of-old', name: 'old', force: false }]
      })
    );
  });
});

test('what is wrong with a new folder is said where it is wrong', async () => {
  const service = shelve([], {
    'POST /api/folders': () =>
      Response.json(
        { title: 'Conflict', detail: 'name: you have a folder of that name', code: 'conflict' },
        { status: 409 }
      )
  });
  await open(service);
  fireEvent.click(
    (await screen.findAllByRole('button', { name: 'New folder' }))[0] ?? document.body
  );
  const dialog = within(await screen.findByRole('dialog'));
  const field = dialog.getByLabelText('Name');

  fireEvent.change(field, { target: { value: 'data' } });
  fireEvent.click(dialog.getByRole('button', { name: 'Create' }));

  await waitFor(() => expect(field.getAttribute('aria-invalid')).toBe('true'));
  expect(dialog.getByText('you have a folder of that name')).toBeTruthy();
});

test('whoever came to upload is asked into which folder', async () => {
  const service = shelve([
    makeFolder('theirs', { is_owner: false, access: 'ro' }),
    makeFolder('data'),
    makeFolder('results')
  ]);
  await open(service, 'upload=1');
  const dialog = within(await screen.findByRole('dialog', { name: 'Upload data' }));
  const into = await dialog.findByLabelText('Into the folder');
  expect(
    within(into)
      .getAllByRole('option')
      .map(each => each.textContent)
  ).toEqual(['data', 'results']);

  fireEvent.change(into, { target: { value: makeFolder('results').id } });
  fireEvent.click(dialog.getByRole('button', { name: 'Open' }));

  expect(service.opened).toEqual([`/data/${makeFolder('results').id}`]);
});

test('whoever came to upload and has nowhere to is led to making a folder', async () => {
  await open(shelve([]), 'upload=1');
  const dialog = within(await screen.findByRole('dialog', { name: 'Upload data' }));

  fireEvent.click(await dialog.findByRole('button', { name: 'New folder' }));

  await screen.findByRole('dialog', { name: 'New folder' });
});

test('invitations are answered where they are seen', async () => {
  const offer = {
    id: 'i1',
    folder_id: 'f9',
    folder: 'results',
    host: 'local',
    inviter: 'grace',
    inviter_id: '2',
    invitee: 'mina',
    invitee_id: '1',
    permission: 'rw',
    state: 'pending',
    created_at: '2026-01-02T03:00:00Z',
    modified_at: '2026-01-02T03:00:00Z'
  };
  const sent = { ...offer, id: 'i2', invitee: 'eve', inviter: 'mina' };
  const service = shelve([], {
    'GET /api/invitations': () => [offer, sent],
    'POST /api/invitations/i1/accept': () => ({ ...offer, state: 'accepted' })
  });
  await open(service);
  const got = within(await screen.findByRole('region', { name: 'Invitations' }));

  expect(got.getAllByRole('listitem')).toHaveLength(1);
  fireEvent.click(got.getByRole('button', { name: 'Accept results' }));

  await waitFor(() => expect(service.told[0]?.text).toBe('results is among your folders now.'));
});
