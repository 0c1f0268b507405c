/** Keys for programs. */
import { KeyRound, KeySquare, RefreshCw, Trash2 } from 'lucide-react';
import { KeypairBadges } from '../Badges';
import { flag, line } from '../limits';
import { describe } from '../noun';
import { IssueSecret, NewSecret } from '../panels/secrets';
import { administers, readsTenants } from '../roles';
import { DotfilesPanel } from '../panels/DotfilesPanel';

export const keypairs = describe({
  name: 'keypairs',
  path: '/admin/keypairs',
  Icon: KeyRound,
  admits: readsTenants,
  writes: administers,
  Badges: KeypairBadges,
  Made: NewSecret,
  columns: [
    { key: 'user' },
    { key: 'resource_policy' },
    { key: 'rate_limit', align: 'end' },
    { key: 'num_queries', align: 'end', hidden: true },
    { key: 'description', hidden: true },
    { key: 'is_admin', hidden: true }
  ],
  tabs: [
    { key: 'active', filter: { is_active: 'true' } },
    { key: 'inactive', filter: { is_active: 'false' } }
  ],
  filters: [
    { key: 'is_default', of: 'flag' },
    { key: 'is_admin', of: 'flag' }
  ],
  sections: [
    {
      key: 'key',
      fields: [
        {
          name: 'user',
          kind: { type: 'reference', noun: 'users' },
          once: true,
          required: true
        },
        { name: 'description', kind: line(), initial: '' },
        { name: 'is_active', kind: flag, initial: true },
        { name: 'is_admin', kind: flag, initial: false },
        { name: 'is_default', kind: flag, initial: false }
      ]
    },
    {
      key: 'limits',
      fields: [
        {
          name: 'resource_policy',
          kind: { type: 'reference', noun: 'keypair-policies', optional: true }
        },
        {
          name: 'rate_limit',
          kind: { type: 'number', least: 1, most: 50_000 },
          initial: 10_000
        }
      ]
    },
    {
      key: 'bootstrap',
      fields: [
        {
          name: 'bootstrap_script',
          kind: { type: 'page', most: 64 << 10, code: true },
          initial: ''
        }
      ]
    }
  ],
  together: ['resource_policy', 'rate_limit', 'is_active', 'is_admin', 'description'],
  verbs: [
    {
      key: 'deactivate',
      Icon: KeySquare,
      when: row => row.is_active !== false && !row.is_default,
      change: { fields: { is_active: false }, undo: { is_active: true } }
    },
    {
      key: 'activate',
      Icon: KeyRound,
      when: row => row.is_active === false,
      change: { fields: { is_active: true }, undo: { is_active: false } }
    },
    { key: 'issueSecret', Icon: RefreshCw, Dialog: IssueSecret },
    {
      key: 'purge',
      Icon: Trash2,
      danger: true,
      purges: true,
      when: row => !row.is_default
    }
  ],
  panels: [{ key: 'dotfiles', Panel: DotfilesPanel.ofKeypair }]
});
