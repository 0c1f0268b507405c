import { useQuery } from '@tanstack/react-query';
import { useHost } from '../host';
import { meQuery } from '../queries';
import { isMonitor } from './page';

/**
 * Whether the reader is a monitor, who is offered nothing that changes something.
 *
 * Asks nothing by itself: every page is chosen by who reads it.
 */
export function useLooksOnly(): boolean {
  const me = useQuery({ ...meQuery(useHost()), enabled: false }).data;
  return me !== undefined && isMonitor(me);
}
