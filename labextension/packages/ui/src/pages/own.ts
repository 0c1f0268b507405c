/** Pages about oneself: the nodes one may use, settings, keys, one's files. */
import { Server, Settings } from 'lucide-react';
import { readsSite } from '../nouns/roles';
import type { Page } from './page';

export const ownPages: readonly Page[] = [
  {
    path: '/agent-summary',
    areas: ['nodes'],
    load: () => import('../agents/AgentSummaryPage'),
    // Who runs the site has a fuller page of them.
    admits: me => me.sees_agents && !readsSite(me),
    way: { text: 'nav.nodes', Icon: Server, group: 'work' }
  },
  {
    path: '/settings',
    areas: ['admin', 'own'],
    load: async () => ({ default: (await import('../settings/SettingsPage')).default }),
    way: { text: 'nav.settings', Icon: Settings, group: 'work' }
  }
];
