/** The list of pages that the stories in a real browser walk through, kept complete. */
import type { Me } from '@backendai/api';
import { expect, test } from 'vitest';
import { PAGES } from '.';

const ROLES: Me['roles'] = ['superadmin', 'domain-admin', 'monitor', 'user'];
const KEPT = '../../../../../tests/e2e/ui/pages.json';

const me = (role: Me['roles'][number]): Me => ({
  name: 'mina',
  domain: 'default',
  project: 'default',
  projects: ['default'],
  sees_agents: true,
  roles: ['user', role]
});

test('every page, and who finds it, is known to the stories of all pages', async () => {
  const admitted = PAGES.map(({ path, admits }) => {
    const roles = ROLES.filter(role => admits?.(me(role)) ?? true);
    return [path, roles];
  });
  const lines = admitted.map(
    ([path, roles]) => `  ${JSON.stringify(path)}: ${JSON.stringify(roles)}`
  );
  // A page that was added: write it anew with `npx vitest run -u packages/ui/src/pages`.
  await expect(`{\n${lines.join(',\n')}\n}\n`).toMatchFileSnapshot(KEPT);
});

test('no two pages answer for one address, and every way has one', () => {
  expect(new Set(PAGES.map(page => page.path)).size).toBe(PAGES.length);
  expect(PAGES.filter(page => page.way).every(page => !page.path.includes(':'))).toBe(true);
});
