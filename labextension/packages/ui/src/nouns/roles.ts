/** Who sees which pages of administration, and who changes what is there. */
import type { Me } from '@backendai/api';
import { administers, isSuperadmin } from '../pages/page';

const monitors = (me: Me): boolean => me.roles.includes('monitor');

/** What is of the whole site: monitors read it, superadmins change it. */
export const readsSite = (me: Me): boolean => isSuperadmin(me) || monitors(me);
/** What is of a domain: its administrators see and change their own. */
export const readsTenants = (me: Me): boolean => administers(me) || monitors(me);

export { administers, isSuperadmin };
