/** People, and what they may. */
import { Trash2, UserCheck, UserX, UserRound } from 'lucide-react';
import { RoleBadge, UserBadges } from '../Badges';
import { flag, line, MOST } from '../limits';
import { describe } from '../noun';
import { administers, readsTenants, standsBelow } from '../roles';
import { AccountPanel } from '../panels/AccountPanel';
import { BulkUsers } from '../panels/BulkUsers';
import { NewAccount } from '../panels/NewAccount';
import { UserKeys } from '../panels/UserKeys';

const USUAL_ID = { value: null, text: 'usual' };

export const users = describe({
  name: 'users',
  path: '/admin/users',
  Icon: UserRound,
  admits: readsTenants,
  writes: administers,
  changes: (row, me) => standsBelow(row.role, me),
  Badges: UserBadges,
  More: BulkUsers,
  create: NewAccount.create,
  Made: NewAccount,
  columns: [
    { key: 'full_name' },
    { key: 'email' },
    { key: 'domain' },
    { key: 'role', sort: true, cell: RoleBadge },
    { key: 'resource_policy', hidden: true },
    { key: 'project', hidden: true },
    { key: 'description', hidden: true }
  ],
  tabs: [
    { key: 'active', filter: { status: 'active' } },
    { key: 'inactive', filter: { status: 'inactive,before-verification,deleted' } }
  ],
  filters: [
    { key: 'role', of: ['user', 'domain-admin', 'superadmin', 'monitor'] },
    { key: 'domain', of: { noun: 'domains' } }
  ],
  sections: [
    {
      key: 'person',
      fields: [
        { name: 'name', kind: line(255), once: true, required: true },
        { name: 'account' as 'name', kind: flag, initial: true, once: true, virtual: true },
        { name: 'full_name', kind: line(64), initial: '' },
        { name: 'email', kind: line(64), initial: '' },
        { name: 'description', kind: line(), initial: '' }
      ]
    },
    {
      key: 'place',
      fields: [
        {
          name: 'domain',
          kind: { type: 'reference', noun: 'domains', optional: true },
          by: 'superadmin'
        },
        {
          name: 'project',
          kind: { type: 'reference', noun: 'projects', optional: true },
          value: item =>
            item.project ? `${String(item.domain)}:${String(item.project)}` : null
        },
        {
          name: 'role',
          kind: {
            type: 'choice',
            of: ['user', 'domain-admin', 'superadmin', 'monitor'],
            admits: standsBelow
          },
          initial: 'user'
        },
        {
          name: 'status',
          kind: {
            type: 'choice',
            of: ['active', 'inactive', 'before-verification', 'deleted']
          },
          initial: 'active'
        },
        {
          name: 'resource_policy',
          kind: { type: 'reference', noun: 'user-policies', optional: true }
        },
        {
          name: 'allowed_client_ip',
          kind: { type: 'words', most: 64 },
          initial: []
        }
      ]
    },
    {
      key: 'containers',
      fields: [
        { name: 'sudo_session_enabled', kind: flag, initial: false, by: 'superadmin' },
        {
          name: 'container_uid',
          kind: { type: 'number', least: 1000, most: MOST - 1, specials: [USUAL_ID] },
          initial: null,
          by: 'superadmin'
        },
        {
          name: 'container_main_gid',
          kind: { type: 'number', least: 1000, most: MOST - 1, specials: [USUAL_ID] },
          initial: null,
          by: 'superadmin'
        },
        {
          name: 'container_gids',
          kind: { type: 'numbers', least: 1000 },
          initial: [],
          by: 'superadmin'
        },
        { name: 'integration_id', kind: line(), initial: '' }
      ]
    }
  ],
  together: [
    'domain',
    'project',
    'role',
    'status',
    'resource_policy',
    'description',
    'allowed_client_ip',
    'sudo_session_enabled'
  ],
  verbs: [
    {
      key: 'deactivate',
      Icon: UserX,
      when: (row, me) => row.status === 'active' && row.name !== me.name,
      change: { fields: { status: 'inactive' }, undo: { status: 'active' } }
    },
    {
      key: 'activate',
      Icon: UserCheck,
      when: row => row.status !== 'active',
      change: { fields: { status: 'active' }, undo: { status: 'inactive' } }
    },
    {
      key: 'purge',
      Icon: Trash2,
      danger: true,
      purges: true,
      by: 'superadmin',
      when: (row, me) => row.status !== 'active' && row.name !== me.name
    }
  ],
  panels: [
    {
      key: 'account',
      Panel: AccountPanel,
      admits: (me, row) => administers(me) && standsBelow(row.role, me)
    },
    { key: 'keys', Panel: UserKeys, admits: readsTenants }
  ]
});
