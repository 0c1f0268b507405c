/** Who sees which pages of administration, and who changes what is there. */
import type { Me } from '@backendai/api';
import { administers, isMonitor, isSuperadmin } from '../pages/page';

/** What is of the whole site: monitors read it, superadmins change it. */
export const readsSite = (me: Me): boolean => isSuperadmin(me) || isMonitor(me);
/** What is of a domain: its administrators see and change their own. */
export const readsTenants = (me: Me): boolean => administers(me) || isMonitor(me);

const ABOVE: readonly unknown[] = ['superadmin', 'monitor'];

/** Whether *me* may give a role, and change those who have it. */
export const standsBelow = (role: unknown, me: Me): boolean =>
  isSuperadmin(me) || !ABOVE.includes(role);

export { administers, isSuperadmin };
