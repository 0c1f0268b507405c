/** Who finds a page finds the way to it from the pages beside it. */
import type { Me } from '@backendai/api';
import { expect, test } from 'vitest';
import { PAGES } from '../pages';
import { FAMILIES } from './families';

const ROLES: Me['roles'] = ['superadmin', 'domain-admin', 'monitor', 'user'];

const me = (role: Me['roles'][number]): Me => ({
  name: 'mina',
  domain: 'default',
  project: 'default',
  projects: ['default'],
  sees_agents: true,
  roles: ['user', role]
});

test('whoever may see a page is shown the way to it, and nobody else', () => {
  const pages = new Map(PAGES.map(page => [page.path, page]));
  for (const { path, admits } of FAMILIES.flat()) {
    const page = pages.get(path);
    if (page) {
      const wrong = ROLES.filter(
        role => admits(me(role)) !== (page.admits?.(me(role)) ?? true)
      );
      expect([path, wrong]).toEqual([path, []]);
    }
  }
});
