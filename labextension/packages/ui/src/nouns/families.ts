/** Pages that belong together: each shows the way to the others above its list. */
import type { Me } from '@backendai/api';
import { readsSite, readsTenants } from './roles';

export interface Sibling {
  path: string;
  /** A key of `ways.…` in the catalogue `admin`. */
  text: string;
  admits(me: Me): boolean;
}

const of = (admits: Sibling['admits'], ways: Record<string, string>): Sibling[] =>
  Object.entries(ways).map(([path, text]) => ({ path, text, admits }));

export const FAMILIES: readonly Sibling[][] = [
  of(readsTenants, { '/admin/users': 'users', '/admin/keypairs': 'keypairs' }),
  of(readsTenants, { '/admin/projects': 'projects', '/admin/domains': 'domains' }),
  of(readsSite, {
    '/admin/images': 'images',
    '/admin/presets': 'presets',
    '/admin/registries': 'registries'
  }),
  [
    ...of(readsTenants, { '/admin/scheduler': 'queue', '/admin/scheduler/shares': 'shares' }),
    ...of(readsSite, {
      '/admin/reservations': 'reservations',
      '/admin/scheduler/preemption': 'preemption',
      '/admin/scheduler/simulate': 'simulate'
    })
  ],
  of(readsSite, {
    '/admin/policies/keypair': 'keypairPolicies',
    '/admin/policies/user': 'userPolicies',
    '/admin/policies/project': 'projectPolicies'
  }),
  of(readsSite, {
    '/nodes': 'agents',
    '/admin/groups': 'groups',
    '/admin/storage': 'storage',
    '/admin/slot-types': 'slotTypes'
  })
];

export const familyOf = (path: string): readonly Sibling[] =>
  FAMILIES.find(family => family.some(sibling => sibling.path === path)) ?? [];
