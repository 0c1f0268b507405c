/** The kinds of resources there are. */
import { Cpu, Power, PowerOff, Trash2 } from 'lucide-react';
import { count, flag, line } from '../limits';
import { describe } from '../noun';
import { isSuperadmin, readsSite } from '../roles';

export const slotTypes = describe({
  name: 'slot-types',
  path: '/admin/slot-types',
  Icon: Cpu,
  admits: readsSite,
  writes: isSuperadmin,
  order: 'rank',
  columns: [
    { key: 'display_name' },
    { key: 'slot_type' },
    { key: 'display_unit' },
    { key: 'enabled' },
    { key: 'required' },
    { key: 'rank', align: 'end', sort: true, hidden: true }
  ],
  filters: [
    { key: 'enabled', of: 'flag' },
    { key: 'slot_type', of: ['count', 'bytes', 'unique', 'unified'] }
  ],
  sections: [
    {
      key: 'slotType',
      fields: [
        { name: 'name', kind: line(128), once: true, required: true },
        {
          name: 'slot_type',
          kind: { type: 'choice', of: ['count', 'bytes', 'unique', 'unified'] },
          initial: 'count',
          once: true
        },
        { name: 'description', kind: line(), initial: '' },
        { name: 'enabled', kind: flag, initial: true },
        { name: 'required', kind: flag, initial: false }
      ]
    },
    {
      key: 'looks',
      fields: [
        { name: 'display_name', kind: line(64), initial: '' },
        { name: 'display_unit', kind: line(32), initial: '' },
        { name: 'rank', kind: count(), initial: 1000 },
        { name: 'number_format.binary', kind: flag, initial: false },
        { name: 'number_format.round_length', kind: count([], 0, 9), initial: 0 }
      ]
    }
  ],
  verbs: [
    {
      key: 'disable',
      Icon: PowerOff,
      when: row => row.enabled !== false,
      change: { fields: { enabled: false }, undo: { enabled: true } }
    },
    {
      key: 'enable',
      Icon: Power,
      when: row => row.enabled === false,
      change: { fields: { enabled: true }, undo: { enabled: false } }
    },
    { key: 'purge', Icon: Trash2, danger: true, purges: true }
  ]
});
