/** Pages for those who run the site, or a domain of it. */
import {
  Building2,
  Info,
  ListOrdered,
  Package,
  ScrollText,
  Server,
  SlidersHorizontal,
  UsersRound,
  Wrench
} from 'lucide-react';
import { createElement } from 'react';
import { readsSite, readsTenants } from '../nouns/roles';
import { NOUN_TABLE, type NounPath } from '../nouns/table';
import type { Page } from './page';

type Way = Omit<NonNullable<Page['way']>, 'group'>;

/** List, one of them and the form of one noun: they share what is loaded. */
function nounPages(path: NounPath, admits: Page['admits'] & {}, way?: Way): Page[] {
  const load: Page['load'] = async () => {
    const [{ NounPages }, noun] = await Promise.all([
      import('../nouns/NounPages'),
      NOUN_TABLE[path]()
    ]);
    return { default: ({ params }) => createElement(NounPages, { noun, params }) };
  };
  const common = { areas: ['admin'] as const, load, admits };
  return [
    { ...common, path, ...(way ? { way: { ...way, group: 'site' as const } } : {}) },
    { ...common, path: `${path}/:id/:verb?` }
  ];
}

const scheduler: Omit<Page, 'path'> = {
  areas: ['admin'],
  load: async () => ({ default: (await import('../scheduler/SchedulerPages')).SchedulerPages }),
  admits: readsTenants
};

export const sitePages: readonly Page[] = [
  ...nounPages('/admin/users', readsTenants, {
    text: 'nav.users',
    Icon: UsersRound,
    also: ['/admin/keypairs']
  }),
  ...nounPages('/admin/keypairs', readsTenants),
  ...nounPages('/admin/projects', readsTenants, {
    text: 'nav.projects',
    Icon: Building2,
    also: ['/admin/domains']
  }),
  ...nounPages('/admin/domains', readsTenants),
  ...nounPages('/admin/images', readsSite, {
    text: 'nav.environments',
    Icon: Package,
    also: ['/admin/presets', '/admin/registries']
  }),
  ...nounPages('/admin/presets', readsSite),
  ...nounPages('/admin/registries', readsSite),
  {
    ...scheduler,
    path: '/admin/scheduler',
    way: {
      text: 'nav.scheduler',
      Icon: ListOrdered,
      group: 'site',
      also: ['/admin/reservations']
    }
  },
  { ...scheduler, path: '/admin/scheduler/:part' },
  ...nounPages('/admin/reservations', readsSite),
  ...nounPages('/admin/policies/keypair', readsSite, {
    text: 'nav.policies',
    Icon: SlidersHorizontal,
    also: ['/admin/policies']
  }),
  ...nounPages('/admin/policies/user', readsSite),
  ...nounPages('/admin/policies/project', readsSite),
  {
    path: '/admin/policies',
    areas: ['admin'],
    load: async () => ({ default: (await import('../admin/Elsewhere')).ToPolicies }),
    admits: readsSite
  },
  {
    path: '/nodes',
    areas: ['nodes', 'admin'],
    load: async () => ({ default: (await import('../agents/AgentsPage')).AgentsPage }),
    admits: readsSite,
    way: {
      text: 'nav.resources',
      Icon: Server,
      group: 'site',
      also: ['/admin/groups', '/admin/storage', '/admin/slot-types']
    }
  },
  {
    path: '/nodes/:id',
    areas: ['nodes', 'admin'],
    load: async () => ({ default: (await import('../agents/AgentPage')).AgentPage }),
    admits: readsSite
  },
  ...nounPages('/admin/groups', readsSite),
  ...nounPages('/admin/slot-types', readsSite),
  {
    path: '/admin/storage',
    areas: ['admin'],
    load: async () => ({ default: (await import('../admin/storage/StoragePage')).default }),
    admits: readsSite
  },
  {
    path: '/admin/storage/:name',
    areas: ['admin'],
    load: async () => ({ default: (await import('../admin/storage/HostPage')).default }),
    admits: readsSite
  },
  {
    path: '/admin/maintenance',
    areas: ['admin'],
    load: async () => ({ default: (await import('../admin/MaintenancePage')).default }),
    admits: readsSite,
    way: { text: 'nav.maintenance', Icon: Wrench, group: 'site' }
  },
  {
    path: '/admin/audit',
    areas: ['admin'],
    load: async () => ({ default: (await import('../admin/AuditPage')).default }),
    admits: readsTenants,
    way: { text: 'nav.audit', Icon: ScrollText, group: 'site' }
  },
  {
    path: '/admin/about',
    areas: ['nodes', 'admin'],
    load: async () => ({ default: (await import('../admin/AboutPage')).default }),
    admits: readsTenants,
    way: { text: 'nav.about', Icon: Info, group: 'site' }
  }
];
