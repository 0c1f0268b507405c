/** Pages about folders and the files in them. */
import { FolderOpen } from 'lucide-react';
import { InvitationCount } from '../data/InvitationCount';
import type { Page } from './page';

export const dataPages: readonly Page[] = [
  {
    path: '/data',
    areas: ['data'],
    load: async () => ({ default: (await import('../data/folders/FoldersPage')).FoldersPage }),
    way: { text: 'nav.data', Icon: FolderOpen, group: 'work', Beside: InvitationCount }
  },
  {
    path: '/data/:id',
    areas: ['data'],
    load: async () => ({
      default: (await import('../data/explorer/ExplorerPage')).ExplorerPage
    })
  }
];
