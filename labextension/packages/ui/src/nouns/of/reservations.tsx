/** Nodes or amounts that are kept for some, or for nobody, for a while. */
import { CalendarClock, Trash2 } from 'lucide-react';
import { line, slug } from '../limits';
import { describe } from '../noun';
import { isSuperadmin, readsSite } from '../roles';

const isClass = (values: Readonly<Record<string, unknown>>): boolean => values.kind === 'class';

export const reservations = describe({
  name: 'reservations',
  path: '/admin/reservations',
  Icon: CalendarClock,
  admits: readsSite,
  writes: isSuperadmin,
  order: '-begins_at',
  columns: [
    { key: 'kind' },
    { key: 'resource_group' },
    { key: 'begins_at', sort: true },
    { key: 'ends_at', sort: true },
    { key: 'nodes' },
    { key: 'amounts', hidden: true },
    { key: 'description', hidden: true }
  ],
  filters: [
    { key: 'kind', of: ['class', 'maintenance'] },
    { key: 'resource_group', of: { noun: 'resource-groups' } }
  ],
  sections: [
    {
      key: 'reservation',
      fields: [
        { name: 'name', kind: slug(), once: true, required: true },
        {
          name: 'kind',
          kind: { type: 'choice', of: ['class', 'maintenance'] },
          initial: 'class',
          once: true
        },
        { name: 'description', kind: line(), initial: '' },
        {
          name: 'resource_group',
          kind: { type: 'reference', noun: 'resource-groups' },
          once: true,
          required: true
        },
        { name: 'begins_at', kind: { type: 'moment' }, once: true, required: true },
        { name: 'ends_at', kind: { type: 'moment' }, required: true }
      ]
    },
    {
      key: 'what',
      fields: [
        {
          name: 'nodes',
          kind: { type: 'words', most: 256, noun: 'agents' },
          initial: [],
          once: true
        },
        {
          name: 'amounts',
          kind: { type: 'slots', limits: false },
          initial: {},
          once: true
        }
      ]
    },
    {
      key: 'forWhom',
      fields: [
        {
          name: 'domains',
          kind: { type: 'words', most: 256, noun: 'domains' },
          initial: [],
          once: true,
          when: isClass
        },
        {
          name: 'projects',
          kind: { type: 'words', most: 256, noun: 'projects' },
          initial: [],
          once: true,
          when: isClass
        },
        {
          name: 'users',
          kind: { type: 'words', most: 256, noun: 'users' },
          initial: [],
          once: true,
          when: isClass
        }
      ]
    }
  ],
  verbs: [{ key: 'purge', Icon: Trash2, danger: true, purges: true }]
});
