/** What a keypair, a user and a project may have. */
import { KeyRound, Trash2, UserRound, UsersRound } from 'lucide-react';
import { ActiveBadges } from '../Badges';
import {
  count,
  flag,
  hosts,
  limits,
  line,
  MINUS_ONE,
  MOST,
  NEVER,
  slug,
  UNLIMITED,
  ZERO
} from '../limits';
import { describe, type NounField, type NounName } from '../noun';
import { isSuperadmin, readsSite } from '../roles';

const PURGE = {
  key: 'purge',
  Icon: Trash2,
  danger: true,
  purges: true,
  when: (row: { is_default?: boolean }) => !row.is_default
};
const SITE = { value: -1, text: 'site' };

const named = <N extends NounName>(): NounField<N>[] =>
  [
    { name: 'name', kind: slug(256), once: true, required: true },
    { name: 'description', kind: line(), initial: '' },
    { name: 'is_default', kind: flag, initial: false }
  ] as unknown as NounField<N>[];

export const keypairPolicies = describe({
  name: 'keypair-policies',
  path: '/admin/policies/keypair',
  Icon: KeyRound,
  admits: readsSite,
  writes: isSuperadmin,
  Badges: ActiveBadges,
  columns: [
    { key: 'total_resource_slots' },
    { key: 'max_concurrent_sessions', align: 'end' },
    { key: 'max_session_lifetime', align: 'end' },
    { key: 'idle_timeout', align: 'end' },
    { key: 'max_containers_per_session', align: 'end', hidden: true },
    { key: 'max_pending_session_count', align: 'end', hidden: true },
    { key: 'max_priority', align: 'end', hidden: true },
    { key: 'max_job_priority', align: 'end', hidden: true },
    { key: 'description', hidden: true }
  ],
  filters: [{ key: 'is_default', of: 'flag' }],
  sections: [
    { key: 'policy', fields: named<'keypair-policies'>() },
    {
      key: 'amounts',
      fields: [
        { name: 'total_resource_slots', kind: limits, initial: {} },
        {
          name: 'default_for_unspecified',
          kind: { type: 'choice', of: ['UNLIMITED', 'LIMITED'] },
          initial: 'UNLIMITED'
        }
      ]
    },
    {
      key: 'sessions',
      fields: [
        { name: 'max_concurrent_sessions', kind: count([ZERO], -1), initial: 5 },
        { name: 'max_concurrent_sftp_sessions', kind: count([ZERO], -1), initial: 1 },
        { name: 'max_containers_per_session', kind: count([ZERO], -1), initial: 1 },
        {
          name: 'max_session_lifetime',
          kind: { type: 'duration', most: MOST, specials: [ZERO] },
          initial: 0
        },
        {
          name: 'idle_timeout',
          kind: { type: 'duration', most: 15_552_000, specials: [NEVER, SITE] },
          initial: 3600
        }
      ]
    },
    {
      key: 'queue',
      fields: [
        { name: 'max_pending_session_count', kind: count([UNLIMITED]), initial: null },
        { name: 'max_priority', kind: count([UNLIMITED], 0, 100), initial: null },
        { name: 'max_job_priority', kind: count([UNLIMITED], -MOST, MOST), initial: 0 },
        { name: 'allows_not_preemptible', kind: flag, initial: true },
        { name: 'max_pending_session_resource_slots', kind: limits, initial: {} }
      ]
    },
    {
      key: 'storage',
      fields: [{ name: 'allowed_vfolder_hosts', kind: hosts, initial: {} }]
    }
  ],
  verbs: [PURGE]
});

export const userPolicies = describe({
  name: 'user-policies',
  path: '/admin/policies/user',
  Icon: UserRound,
  admits: readsSite,
  writes: isSuperadmin,
  Badges: ActiveBadges,
  columns: [
    { key: 'max_vfolder_count', align: 'end' },
    { key: 'max_quota_scope_size', align: 'end' },
    { key: 'max_concurrent_logins', align: 'end' },
    { key: 'max_session_count_per_model_session', align: 'end', hidden: true },
    { key: 'max_customized_image_count', align: 'end', hidden: true },
    { key: 'description', hidden: true }
  ],
  filters: [{ key: 'is_default', of: 'flag' }],
  sections: [
    { key: 'policy', fields: named<'user-policies'>() },
    {
      key: 'folders',
      fields: [
        { name: 'max_vfolder_count', kind: count([ZERO]), initial: 0 },
        {
          name: 'max_quota_scope_size',
          kind: { type: 'size', specials: [MINUS_ONE] },
          initial: '-1'
        }
      ]
    },
    {
      key: 'more',
      fields: [
        { name: 'max_concurrent_logins', kind: count([UNLIMITED], 1), initial: null },
        { name: 'max_session_count_per_model_session', kind: count(), initial: 10 },
        { name: 'max_customized_image_count', kind: count(), initial: 3 }
      ]
    }
  ],
  verbs: [PURGE]
});

export const projectPolicies = describe({
  name: 'project-policies',
  path: '/admin/policies/project',
  Icon: UsersRound,
  admits: readsSite,
  writes: isSuperadmin,
  Badges: ActiveBadges,
  columns: [
    { key: 'max_vfolder_count', align: 'end' },
    { key: 'max_quota_scope_size', align: 'end' },
    { key: 'max_network_count', align: 'end' },
    { key: 'description', hidden: true }
  ],
  filters: [{ key: 'is_default', of: 'flag' }],
  sections: [
    { key: 'policy', fields: named<'project-policies'>() },
    {
      key: 'folders',
      fields: [
        { name: 'max_vfolder_count', kind: count([ZERO]), initial: 0 },
        {
          name: 'max_quota_scope_size',
          kind: { type: 'size', specials: [MINUS_ONE] },
          initial: '-1'
        },
        { name: 'max_network_count', kind: count(), initial: 3 }
      ]
    }
  ],
  verbs: [PURGE]
});
