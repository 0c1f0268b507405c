/** Tenants: people of one see nothing of another. */
import { Building2, Power, PowerOff, Trash2 } from 'lucide-react';
import { ActiveBadges } from '../Badges';
import { flag, hosts, limits, line, slug } from '../limits';
import { describe } from '../noun';
import { DotfilesPanel } from '../panels/DotfilesPanel';
import { administers, isSuperadmin, readsTenants } from '../roles';

export const domains = describe({
  name: 'domains',
  path: '/admin/domains',
  Icon: Building2,
  admits: readsTenants,
  writes: administers,
  creates: isSuperadmin,
  Badges: ActiveBadges,
  columns: [
    { key: 'description' },
    { key: 'total_resource_slots' },
    { key: 'allowed_docker_registries' },
    { key: 'allowed_vfolder_hosts', hidden: true }
  ],
  tabs: [
    { key: 'active', filter: { is_active: 'true' } },
    { key: 'inactive', filter: { is_active: 'false' } }
  ],
  sections: [
    {
      key: 'domain',
      fields: [
        { name: 'name', kind: slug(), required: true, by: 'superadmin' },
        { name: 'description', kind: line(), initial: '' },
        { name: 'is_active', kind: flag, initial: true, by: 'superadmin' },
        { name: 'is_default', kind: flag, initial: false, by: 'superadmin' },
        { name: 'integration_id', kind: line(), initial: '' }
      ]
    },
    {
      key: 'limits',
      fields: [{ name: 'total_resource_slots', kind: limits, initial: {}, by: 'superadmin' }]
    },
    {
      key: 'environments',
      fields: [
        {
          name: 'allowed_docker_registries',
          kind: { type: 'words', most: 256, noun: 'registries' },
          initial: [],
          by: 'superadmin'
        }
      ]
    },
    {
      key: 'storage',
      fields: [{ name: 'allowed_vfolder_hosts', kind: hosts, initial: {}, by: 'superadmin' }]
    }
  ],
  verbs: [
    {
      key: 'deactivate',
      Icon: PowerOff,
      by: 'superadmin',
      when: row => row.is_active !== false,
      change: { fields: { is_active: false }, undo: { is_active: true } }
    },
    {
      key: 'activate',
      Icon: Power,
      by: 'superadmin',
      when: row => row.is_active === false,
      change: { fields: { is_active: true }, undo: { is_active: false } }
    },
    {
      key: 'purge',
      Icon: Trash2,
      danger: true,
      purges: true,
      by: 'superadmin',
      when: row => row.is_active === false && !row.is_default
    }
  ],
  panels: [{ key: 'dotfiles', Panel: DotfilesPanel.ofDomain, admits: administers }]
});
