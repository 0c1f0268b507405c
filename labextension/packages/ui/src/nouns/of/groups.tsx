/** Nodes that are scheduled together. */
import { Boxes, Power, PowerOff, Trash2 } from 'lucide-react';
import { ActiveBadges } from '../Badges';
import { count, flag, line, MOST, slug } from '../limits';
import { describe } from '../noun';
import { AccessPanel } from '../panels/AccessPanel';
import { GroupNodes } from '../panels/GroupNodes';
import { isSuperadmin, readsSite } from '../roles';

const OFF = { value: 0, text: 'off' };
const AT_ONCE = { value: 0, text: 'atOnce' };
const NEVER = { value: null, text: 'never' };
const AS_OTHERS = { value: null, text: 'asOthers' };
const displaces = (values: Readonly<Record<string, unknown>>): boolean =>
  valueOf(values, 'scheduler_opts.preemption.enabled') === true;

/* Read of a form, where parts have a name each, and of what is shown, where they nest. */
function valueOf(values: Readonly<Record<string, unknown>>, name: string): unknown {
  return name in values
    ? values[name]
    : name
        .split('.')
        .reduce<unknown>(
          (found, part) => (found as Record<string, unknown> | undefined)?.[part],
          values
        );
}

export const groups = describe({
  name: 'resource-groups',
  path: '/admin/groups',
  Icon: Boxes,
  admits: readsSite,
  writes: isSuperadmin,
  Badges: ActiveBadges,
  columns: [
    { key: 'description' },
    { key: 'scheduler' },
    { key: 'is_public', hidden: true },
    { key: 'use_host_network', hidden: true }
  ],
  tabs: [
    { key: 'active', filter: { is_active: 'true' } },
    { key: 'inactive', filter: { is_active: 'false' } }
  ],
  filters: [{ key: 'is_public', of: 'flag' }],
  sections: [
    {
      key: 'group',
      fields: [
        { name: 'name', kind: slug(), once: true, required: true },
        { name: 'description', kind: line(), initial: '' },
        { name: 'is_active', kind: flag, initial: true },
        { name: 'is_public', kind: flag, initial: true },
        { name: 'is_default', kind: flag, initial: false },
        { name: 'use_host_network', kind: flag, initial: false }
      ]
    },
    {
      key: 'queue',
      fields: [
        {
          name: 'scheduler',
          kind: { type: 'choice', of: ['fifo', 'lifo', 'drf', 'fair-share'], open: true },
          initial: 'fifo'
        },
        {
          name: 'scheduler_opts.allowed_session_types',
          kind: {
            type: 'choices',
            of: ['interactive', 'batch', 'inference', 'system'],
            some: true
          },
          initial: ['interactive', 'batch', 'inference']
        },
        {
          name: 'scheduler_opts.pending_timeout',
          kind: { type: 'duration', most: MOST, specials: [OFF] },
          initial: 0
        },
        {
          name: 'scheduler_opts.reserve_after',
          kind: { type: 'duration', most: MOST, specials: [NEVER] },
          initial: 3600
        },
        {
          name: 'scheduler_opts.reserve_wide_after',
          kind: { type: 'duration', most: MOST, specials: [AT_ONCE, AS_OTHERS] },
          initial: 0
        },
        {
          name: 'default_session_options.priority',
          kind: count([], 0, 100),
          initial: 10
        },
        {
          name: 'default_session_options.job_priority',
          kind: count([], -MOST, MOST),
          initial: 0
        }
      ]
    },
    {
      key: 'placement',
      fields: [
        {
          name: 'scheduler_opts.agent_selection_strategy',
          kind: {
            type: 'choice',
            of: ['fragmentation', 'concentrated', 'dispersed', 'roundrobin'],
            open: true
          },
          initial: 'fragmentation'
        },
        {
          name: 'scheduler_opts.allow_fractional_resource_fragmentation',
          kind: flag,
          initial: false
        },
        { name: 'scheduler_opts.rack_label', kind: line(63), initial: 'rack' }
      ]
    },
    {
      key: 'preemption',
      fields: [
        { name: 'scheduler_opts.preemption.enabled', kind: flag, initial: false },
        {
          name: 'scheduler_opts.preemption.order',
          kind: {
            type: 'choice',
            of: ['oldest', 'newest', 'fewest-sessions', 'smallest-resources']
          },
          initial: 'oldest',
          when: displaces
        },
        {
          name: 'scheduler_opts.preemption.mode',
          kind: { type: 'choice', of: ['terminate', 'reschedule'] },
          initial: 'terminate',
          when: displaces
        },
        {
          name: 'scheduler_opts.preemption.victim_scope',
          kind: { type: 'choice', of: ['user', 'project', 'domain', 'resource-group'] },
          initial: 'user',
          when: displaces
        },
        {
          name: 'scheduler_opts.preemption.min_runtime',
          kind: { type: 'duration', most: MOST, specials: [AT_ONCE] },
          initial: 0,
          when: displaces
        },
        {
          name: 'scheduler_opts.preemption.grace_seconds',
          kind: { type: 'duration', most: 3600, specials: [] },
          initial: 30,
          when: displaces
        }
      ]
    },
    {
      key: 'fairShare',
      fields: [
        {
          name: 'fair_share_spec.half_life_days',
          kind: { type: 'number', least: 0.001, most: MOST, digits: 3 },
          initial: 7
        },
        {
          name: 'fair_share_spec.lookback_days',
          kind: { type: 'number', least: 1, most: 36_500 },
          initial: 28
        },
        {
          name: 'fair_share_spec.decay_unit_days',
          kind: { type: 'number', least: 1, most: 36_500 },
          initial: 1
        },
        {
          name: 'fair_share_spec.default_weight',
          kind: { type: 'number', least: 0.001, most: MOST, digits: 3 },
          initial: 1
        },
        {
          name: 'fair_share_spec.resource_weights',
          kind: { type: 'weights' },
          initial: {}
        }
      ]
    },
    {
      key: 'appProxy',
      fields: [
        { name: 'wsproxy_addr', kind: line(1024), initial: '' },
        {
          name: 'wsproxy_api_token',
          kind: { type: 'line', most: 1024 },
          initial: '',
          secret: true
        }
      ]
    }
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
      when: row => !row.is_default
    }
  ],
  panels: [
    { key: 'access', Panel: AccessPanel },
    { key: 'nodes', Panel: GroupNodes }
  ]
});
