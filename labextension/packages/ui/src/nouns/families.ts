/** Pages that belong together: each shows the way to the others above its list. */
import { administers, isSuperadmin } from '../pages/page';
import type { Me } from '@backendai/api';

export interface Sibling {
  path: string;
  /** A key of `ways.…` in the catalogue `admin`. */
  text: string;
  admits(me: Me): boolean;
}

const of = (admits: Sibling['admits'], ways: Record<string, string>): Sibling[] =>
  Object.entries(ways).map(([path, text]) => ({ path, text, admits }));

export const FAMILIES: readonly Sibling[][] = [
  of(administers, { '/admin/users': 'users', '/admin/keypairs': 'keypairs' }),
  of(administers, { '/admin/projects': 'projects', '/admin/domains': 'domains' }),
  of(isSuperadmin, {
    '/admin/images': 'images',
    '/admin/presets': 'presets',
    '/admin/registries': 'registries'
  }),
  [
    ...of(administers, { '/admin/scheduler': 'queue', '/admin/scheduler/shares': 'shares' }),
    ...of(isSuperadmin, {
      '/admin/reservations': 'reservations',
      '/admin/scheduler/preemption': 'preemption',
      '/admin/scheduler/simulate': 'simulate'
    })
  ],
  of(isSuperadmin, {
    '/admin/policies/keypair': 'keypairPolicies',
    '/admin/policies/user': 'userPolicies',
    '/admin/policies/project': 'projectPolicies'
  }),
  of(isSuperadmin, {
    '/nodes': 'agents',
    '/admin/groups': 'groups',
    '/admin/storage': 'storage',
    '/admin/slot-types': 'slotTypes'
  })
];

export const familyOf = (path: string): readonly Sibling[] =>
  FAMILIES.find(family => family.some(sibling => sibling.path === path)) ?? [];
