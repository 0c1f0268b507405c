/** People who work together, inside one domain. */
import { FolderKanban, Power, PowerOff, Trash2 } from 'lucide-react';
import { ActiveBadges } from '../Badges';
import { flag, hosts, limits, line, slug } from '../limits';
import { describe } from '../noun';
import { DotfilesPanel } from '../panels/DotfilesPanel';
import { MembersPanel } from '../panels/MembersPanel';
import { administers, readsTenants } from '../roles';

export const projects = describe({
  name: 'projects',
  path: '/admin/projects',
  Icon: FolderKanban,
  admits: readsTenants,
  writes: administers,
  Badges: ActiveBadges,
  columns: [
    { key: 'domain' },
    { key: 'total_resource_slots' },
    { key: 'resource_policy' },
    { key: 'type', hidden: true },
    { key: 'description', hidden: true }
  ],
  tabs: [
    { key: 'active', filter: { is_active: 'true' } },
    { key: 'inactive', filter: { is_active: 'false' } }
  ],
  filters: [
    { key: 'domain', of: { noun: 'domains' } },
    { key: 'type', of: ['general', 'model-store'] }
  ],
  sections: [
    {
      key: 'project',
      fields: [
        { name: 'name', kind: slug(), required: true },
        {
          name: 'domain',
          kind: { type: 'reference', noun: 'domains' },
          once: true,
          required: true
        },
        { name: 'description', kind: line(), initial: '' },
        {
          name: 'type',
          kind: { type: 'choice', of: ['general', 'model-store'] },
          initial: 'general',
          once: true
        },
        { name: 'is_active', kind: flag, initial: true },
        { name: 'integration_id', kind: line(), initial: '' }
      ]
    },
    {
      key: 'limits',
      fields: [
        { name: 'total_resource_slots', kind: limits, initial: {} },
        {
          name: 'resource_policy',
          kind: { type: 'reference', noun: 'project-policies', optional: true }
        }
      ]
    },
    {
      key: 'storage',
      fields: [{ name: 'allowed_vfolder_hosts', kind: hosts, initial: {}, by: 'superadmin' }]
    },
    {
      key: 'ownImages',
      fields: [
        {
          name: 'container_registry.registry',
          kind: { type: 'reference', noun: 'registries', optional: true },
          by: 'superadmin'
        },
        {
          name: 'container_registry.project',
          kind: line(256),
          by: 'superadmin',
          when: values => Boolean(values['container_registry.registry'])
        }
      ]
    }
  ],
  finish: body => {
    const pushed = body.container_registry as { registry?: unknown } | undefined;
    return pushed && !pushed.registry ? { ...body, container_registry: null } : body;
  },
  together: [
    'resource_policy',
    'total_resource_slots',
    'allowed_vfolder_hosts',
    'is_active',
    'description'
  ],
  verbs: [
    {
      key: 'deactivate',
      Icon: PowerOff,
      when: row => row.is_active !== false,
      change: { fields: { is_active: false }, undo: { is_active: true } }
    },
    {
      key: 'activate',
      Icon: Power,
      when: row => row.is_active === false,
      change: { fields: { is_active: true }, undo: { is_active: false } }
    },
    {
      key: 'purge',
      Icon: Trash2,
      danger: true,
      purges: true,
      when: row => row.is_active === false
    }
  ],
  panels: [
    { key: 'members', Panel: MembersPanel },
    { key: 'dotfiles', Panel: DotfilesPanel.ofProject, admits: administers }
  ]
});
