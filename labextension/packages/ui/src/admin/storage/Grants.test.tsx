// @vitest-environment happy-dom
import { cleanup, screen, within } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { PERMISSIONS } from '../../nouns/HostsField';
import { showPage, type Answer } from '../../testing-page';
import { Grants } from './Grants';

afterEach(cleanup);

const giver = (name: string, hosts: Record<string, readonly string[]>, more = {}): object => ({
  id: name,
  name,
  allowed_vfolder_hosts: hosts,
  ...more
});

const SITE: Record<string, object[]> = {
  '/api/domains': [
    giver('default', { local: PERMISSIONS }),
    giver('old', { local: ['upload-file'] }, { is_active: false })
  ],
  '/api/projects': [
    giver('vision', { local: ['mount-in-session', 'download-file'] }, { domain: 'default' }),
    giver('speech', { scratch: PERMISSIONS }, { domain: 'default' })
  ],
  '/api/keypair-policies': [giver('students', { local: [] })]
};

/** The service, telling `limit` rows at a time. */
const serve =
  (limit = 200): Answer =>
  ({ path, query }) => {
    if (path === '/api/me') {
      return { name: 'root', roles: ['superadmin'], domain: 'default', projects: [] };
    }
    const rows = SITE[path] ?? [];
    const from = Number(query.get('after') ?? 0);
    const next = from + limit < rows.length ? `${from + limit}` : null;
    return { items: rows.slice(from, from + limit), next };
  };

const show = async (answer: Answer, name = 'local'): Promise<string[]> => {
  await showPage(<Grants name={name} />, { answer, areas: ['admin'] });
  const table = await screen.findByRole('table');
  const rows = within(table).getAllByRole('row').slice(1);
  return rows.map(row => row.textContent ?? '');
};

test('whoever permits something on a host is named, with what', async () => {
  const rows = await show(serve());

  expect(rows).toEqual([
    expect.stringMatching(/^default.*Domain.*Everything$/),
    expect.stringMatching(/^oldInactive.*Domain.*Upload files$/),
    expect.stringMatching(/^vision.*Project.*Mount in sessions, Download files$/)
  ]);
});

test('the way leads to where it is changed', async () => {
  await show(serve());

  const ways = screen.getAllByRole('link').map(link => link.getAttribute('href'));
  expect(ways).toContain('/admin/projects/default%3Avision');
});

test('those on further pages are read as well', async () => {
  expect(await show(serve(1))).toHaveLength(3);
});

test('they stay where they cannot be asked for again, and it is said', async () => {
  let broken = false;
  const { client } = await showPage(<Grants name="local" />, {
    answer: asked =>
      broken ? Response.json({ title: 'no', detail: 'no' }, { status: 400 }) : serve()(asked),
    areas: ['admin']
  });
  await screen.findByRole('table');

  broken = true;
  void client.invalidateQueries();

  await screen.findByRole('button', { name: 'Try again' });
  expect(screen.getByRole('table')).toBeDefined();
});

test('a host on which nobody may do anything says so', async () => {
  await showPage(<Grants name="new" />, { answer: serve(), areas: ['admin'] });

  expect(await screen.findByText('Nobody may do anything here')).toBeDefined();
});
