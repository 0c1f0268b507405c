/** Where images come from. */
import { Power, PowerOff, Trash2, Warehouse } from 'lucide-react';
import { ActiveBadges } from '../Badges';
import { flag, line, slug } from '../limits';
import { describe } from '../noun';
import { RescannedAt, RescanPanel } from '../panels/RescanPanel';
import { isSuperadmin, readsSite } from '../roles';

const isRemote = (values: Readonly<Record<string, unknown>>): boolean =>
  values.type !== 'local';

export const registries = describe({
  name: 'registries',
  path: '/admin/registries',
  Icon: Warehouse,
  admits: readsSite,
  writes: isSuperadmin,
  Badges: ActiveBadges,
  columns: [
    { key: 'type' },
    { key: 'url' },
    { key: 'project' },
    { key: 'rescanned_at', cell: RescannedAt },
    { key: 'username', hidden: true },
    { key: 'is_global', hidden: true }
  ],
  filters: [
    { key: 'is_active', of: 'flag' },
    {
      key: 'type',
      of: [
        'docker',
        'harbor',
        'harbor2',
        'github',
        'gitlab',
        'ecr',
        'ecr-public',
        'ocp',
        'local'
      ]
    }
  ],
  sections: [
    {
      key: 'registry',
      fields: [
        { name: 'name', kind: slug(), required: true },
        {
          name: 'type',
          kind: {
            type: 'choice',
            of: [
              'docker',
              'harbor',
              'harbor2',
              'github',
              'gitlab',
              'ecr',
              'ecr-public',
              'ocp',
              'local'
            ]
          },
          initial: 'docker',
          once: true
        },
        { name: 'url', kind: line(1024), initial: '', when: isRemote },
        { name: 'project', kind: line(256), initial: '', when: isRemote },
        { name: 'is_active', kind: flag, initial: true },
        { name: 'is_global', kind: flag, initial: false }
      ]
    },
    {
      key: 'login',
      fields: [
        { name: 'username', kind: line(256), initial: '', when: isRemote },
        {
          name: 'password',
          kind: { type: 'line', most: 4096 },
          initial: '',
          secret: true,
          when: isRemote
        },
        { name: 'ssl_verify', kind: flag, initial: true, when: isRemote }
      ]
    },
    {
      key: 'contents',
      fields: [
        {
          name: 'repositories',
          kind: { type: 'words', most: 1000 },
          initial: [],
          when: isRemote
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
    { key: 'purge', Icon: Trash2, danger: true, purges: true }
  ],
  panels: [{ key: 'rescan', Panel: RescanPanel, admits: (_, row) => row.type !== 'local' }]
});
