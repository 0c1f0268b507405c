/** Environments that sessions can be started from. */
import { Box, Trash2, Unplug } from 'lucide-react';
import { ImageBadges } from '../Badges';
import { limits, line } from '../limits';
import { describe } from '../noun';
import { ForgetImage, UntagImage } from '../panels/imageEnds';
import { ImageOrigin, ImageSize } from '../panels/ImageOrigin';
import { AliasesPanel } from '../panels/AliasesPanel';
import { InstallsPanel } from '../panels/InstallsPanel';
import { isSuperadmin, readsSite } from '../roles';

export const images = describe({
  name: 'images',
  path: '/admin/images',
  Icon: Box,
  admits: readsSite,
  writes: isSuperadmin,
  creates: false,
  title: row => row.title || row.name,
  Badges: ImageBadges,
  columns: [
    { key: 'registry' },
    { key: 'architecture' },
    { key: 'tag' },
    { key: 'minimum' },
    { key: 'size_bytes', sort: true, align: 'end', cell: ImageSize },
    { key: 'type', hidden: true },
    { key: 'runtime', hidden: true },
    { key: 'project', hidden: true },
    { key: 'installed', align: 'end', hidden: true }
  ],
  tabs: [
    { key: 'alive', filter: { status: 'ALIVE' } },
    { key: 'gone', filter: { status: 'DELETED' } }
  ],
  filters: [
    { key: 'registry', of: { noun: 'registries' } },
    { key: 'architecture', of: ['x86_64', 'aarch64'] },
    { key: 'type', of: ['compute', 'system', 'service'] }
  ],
  sections: [
    {
      key: 'words',
      fields: [
        { name: 'title', kind: line(256), initial: '' },
        { name: 'description', kind: line(), initial: '' }
      ]
    },
    {
      key: 'needs',
      fields: [
        { name: 'minimum', kind: limits, initial: {} },
        { name: 'maximum', kind: limits, initial: {} },
        { name: 'shmem', kind: { type: 'size' }, initial: '64m' }
      ]
    }
  ],
  verbs: [
    {
      key: 'untag',
      Icon: Unplug,
      danger: true,
      Dialog: UntagImage,
      when: row => row.status === 'ALIVE' && Boolean(row.repository && row.tag)
    },
    {
      key: 'forget',
      Icon: Trash2,
      danger: true,
      Dialog: ForgetImage,
      when: row => row.status === 'ALIVE' && Boolean(row.repository)
    }
  ],
  panels: [
    { key: 'origin', Panel: ImageOrigin },
    { key: 'aliases', Panel: AliasesPanel },
    { key: 'installs', Panel: InstallsPanel }
  ]
});
