/** What sessions use now: told by the stream of one's own, announced of others'. */
import { unwrap, type Session } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { createContext, useMemo } from 'react';
import { useHost } from '../host';
import { keys, meQuery } from '../queries';
import { usePolling } from '../stream';
import { mergeUsage, type UsageMap } from './measured';

/** What the sessions on a page use, asked for once for all of them. */
export const UsageContext = createContext<UsageMap>({});

/** What these sessions use; those that nobody has measured lately are not in it. */
export function useUsage(sessions: readonly Session[]): UsageMap {
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const polling = usePolling();
  const own = useQuery<UsageMap>({
    queryKey: keys.usage,
    queryFn: ({ signal }) => readUsage(host.api, {}, signal),
    enabled: host.visible && polling !== false,
    refetchInterval: polling
  }).data;
  const others = sessions
    .filter(each => each.status === 'RUNNING' && me && each.owner !== me.name)
    .map(each => each.id)
    .join(',');
  const theirs = useQuery<UsageMap>({
    queryKey: [...keys.usageOfOthers, others],
    queryFn: ({ signal }) => readUsage(host.api, { sessions: others }, signal),
    enabled: host.visible && others !== '',
    refetchInterval: polling,
    placeholderData: old => old
  }).data;
  return useMemo(() => ({ ...own, ...(others ? theirs : {}) }), [own, theirs, others]);
}

async function readUsage(
  api: ReturnType<typeof useHost>['api'],
  query: { sessions?: string },
  signal: AbortSignal
): Promise<UsageMap> {
  return mergeUsage(
    {},
    await unwrap(api.GET('/api/usage/live', { params: { query }, signal }))
  );
}
