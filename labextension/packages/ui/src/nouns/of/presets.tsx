/** Amounts that go together, under one name. */
import { Gauge, Trash2 } from 'lucide-react';
import { line, slug } from '../limits';
import { describe } from '../noun';
import { PresetRoom } from '../panels/PresetRoom';
import { isSuperadmin, readsSite } from '../roles';

export const presets = describe({
  name: 'presets',
  path: '/admin/presets',
  Icon: Gauge,
  admits: readsSite,
  writes: isSuperadmin,
  columns: [
    { key: 'resource_slots' },
    { key: 'shared_memory', align: 'end' },
    { key: 'resource_group' },
    { key: 'description', hidden: true }
  ],
  filters: [{ key: 'resource_group', of: { noun: 'resource-groups' } }],
  sections: [
    {
      key: 'preset',
      fields: [
        { name: 'name', kind: slug(), required: true },
        { name: 'description', kind: line(), initial: '' },
        {
          name: 'resource_group',
          kind: { type: 'reference', noun: 'resource-groups', optional: true },
          once: true
        }
      ]
    },
    {
      key: 'amounts',
      fields: [
        {
          name: 'resource_slots',
          kind: { type: 'slots', limits: false },
          required: true
        },
        {
          name: 'shared_memory',
          kind: { type: 'size', specials: [{ value: '0', text: 'usual' }] },
          initial: '0'
        }
      ]
    }
  ],
  verbs: [{ key: 'purge', Icon: Trash2, danger: true, purges: true }],
  panels: [{ key: 'room', Panel: PresetRoom }]
});
