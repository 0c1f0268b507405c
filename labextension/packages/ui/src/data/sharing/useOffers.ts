import { useQuery } from '@tanstack/react-query';
import { useHost } from '../../host';
import { isMonitor } from '../../pages/page';
import { meQuery } from '../../queries';
import { usePolling } from '../../stream';
import { invitationsQuery } from '../queries';
import type { Invitation } from '../types';

/** What others offer to share with whoever looks, and what is not answered yet. */
export function useOffers(): Invitation[] {
  const host = useHost();
  const polling = usePolling();
  const me = useQuery(meQuery(host)).data;
  const query = invitationsQuery(host, polling);
  const mayTake = me !== undefined && !isMonitor(me);
  const { data = [] } = useQuery({ ...query, enabled: host.visible && mayTake });
  return data.filter(each => each.state === 'pending' && each.invitee === me?.name);
}
