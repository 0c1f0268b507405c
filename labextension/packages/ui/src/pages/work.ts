/** Pages for everybody's work. */
import { Gauge, LayoutGrid, SquareTerminal } from 'lucide-react';
import { isMonitor, type Page } from './page';

export const workPages: readonly Page[] = [
  {
    path: '/',
    areas: ['work'],
    load: async () => ({ default: (await import('../start/StartPage')).StartPage }),
    way: { text: 'nav.start', Icon: LayoutGrid, group: 'work' }
  },
  {
    path: '/dashboard',
    areas: ['work'],
    load: async () => ({ default: (await import('../dashboard/DashboardPage')).DashboardPage }),
    way: { text: 'nav.dashboard', Icon: Gauge, group: 'work' }
  },
  {
    path: '/sessions',
    areas: ['work'],
    load: async () => ({ default: (await import('../sessions/SessionsPage')).SessionsPage }),
    way: { text: 'nav.sessions', Icon: SquareTerminal, group: 'work' }
  },
  {
    path: '/launch',
    areas: ['launch', 'work'],
    admits: me => !isMonitor(me),
    load: async () => ({ default: (await import('../launch/LaunchPage')).LaunchPage })
  },
  {
    path: '/sessions/:id',
    areas: ['launch', 'work'],
    load: async () => ({ default: (await import('../sessions/SessionPage')).SessionPage })
  }
];
