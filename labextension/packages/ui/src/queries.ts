/** Every question the pages ask the service, and the cache keys of the answers. */
import { ApiError, unwrap, type Agent, type Session, type SessionPage } from '@backendai/api';
import { keepPreviousData, QueryClient, queryOptions } from '@tanstack/react-query';
import type { Host } from './host';
import { EVERYBODY, type SessionsView } from './sessions/view';
import type { Polling } from './stream';

const MAX_TRIES = 3;

export const keys = {
  me: ['me'] as const,
  agents: ['agents'] as const,
  /** Everything that shows how a node is: by itself, and in its list. */
  nodes: [['agents'], ['list', 'agents']] as const,
  sessions: ['sessions'] as const,
  page: (view: SessionsView) => ['sessions', view] as const,
  session: (id: string) => ['session', id] as const,
  history: (id: string) => ['session', id, 'history'] as const,
  /** What one's own sessions use now. */
  usage: ['usage'] as const,
  /** The same of others', followed by who is asked about. */
  usageOfOthers: ['usage', 'others'] as const,
  /** What one session has used, followed by its id. */
  usageOf: ['usage', 'of'] as const,
  /** What has been tried for a session, followed by its id. */
  attempts: ['attempts'] as const,
  /** Who is next in a resource group, followed by its name. */
  queue: ['queue'] as const,
  /** What runs on a node, followed by its id. */
  onNode: ['on-node'] as const,
  /** What a session has printed, in any container and attempt. */
  logs: (id: string) => ['session', id, 'log'] as const,
  log: (id: string, host: string, attempt: number | null) =>
    [...keys.logs(id), host, attempt] as const,
  resources: (project: string, group: string) => ['resources', project, group] as const,
  /** Where one stands in the queue, as its list was told. */
  place: (id: string) => ['place', id] as const,
  /** Written by the event stream alone. */
  why: (id: string) => ['why', id] as const
};

/** A cache that asks again only where asking again can help. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        // Without a network the service may still be near, or its absence is told.
        networkMode: 'always',
        retry: (failures, error) =>
          failures < MAX_TRIES &&
          (!(error instanceof ApiError) || error.status === 0 || error.status >= 500)
      },
      mutations: { networkMode: 'always' }
    }
  });
}

export const meQuery = ({ api, visible }: Host) =>
  queryOptions({
    queryKey: keys.me,
    queryFn: ({ signal }) => unwrap(api.GET('/api/me', { signal })),
    staleTime: 5 * 60_000,
    enabled: visible
  });

/** Read a page of sessions; `me` is who asks, whose own need not be named. */
export function loadSessions(
  { api }: Pick<Host, 'api'>,
  view: SessionsView,
  me: string,
  signal: AbortSignal
): Promise<SessionPage> {
  const { status, owner, order, limit, after, search, type, project, group } = view;
  const given = { search, type, project, resource_group: group, after };
  const query = {
    status,
    order,
    limit,
    // Without an owner the service answers with one's own.
    ...(owner && owner !== me ? { owner } : {}),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value))
  };
  return unwrap(api.GET('/api/sessions', { params: { query }, signal }));
}

/** Who has left the queue stands somewhere else when it waits again. */
export function leavePlace(client: QueryClient, { id, status }: Session): void {
  if (status !== 'PENDING' && client.getQueryData(keys.place(id))) {
    client.setQueryData(keys.place(id), null);
  }
}

/** Remember where those on a page stand in the queue. */
export function keepPlaces(client: QueryClient, page: SessionPage): SessionPage {
  page.items.forEach(session => leavePlace(client, session));
  for (const [id, place] of Object.entries(page.places ?? {})) {
    client.setQueryData(keys.place(id), place);
  }
  return page;
}

export const pageQuery = (host: Host, view: SessionsView, polling: Polling) =>
  queryOptions({
    queryKey: keys.page(view),
    queryFn: async ({ client, signal }) => {
      const me = view.owner === EVERYBODY ? '' : view.owner;
      return keepPlaces(client, await loadSessions(host, view, me, signal));
    },
    placeholderData: keepPreviousData,
    refetchInterval: polling,
    enabled: host.visible
  });

/** What can be launched by whom, and what is free: of one project and resource group. */
export const resourcesQuery = ({ api, visible }: Host, project = '', group = '') =>
  queryOptions({
    queryKey: keys.resources(project, group),
    queryFn: ({ signal }) => unwrap(api.GET('/api/resources', { signal })),
    staleTime: 10_000,
    enabled: visible
  });

export const sessionQuery = ({ api, visible }: Host, id: string, polling: Polling) =>
  queryOptions({
    queryKey: keys.session(id),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/sessions/{session_id}', { params: { path: { session_id: id } }, signal })
      ),
    refetchInterval: polling,
    enabled: visible
  });

export const historyQuery = ({ api, visible }: Host, id: string, polling: Polling) =>
  queryOptions({
    queryKey: keys.history(id),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/sessions/{session_id}/events', {
          params: { path: { session_id: id } },
          signal
        })
      ),
    refetchInterval: polling,
    enabled: visible
  });

/** So many nodes are asked for at once where all are shown. */
const NODES_AT_ONCE = 200;

/** All nodes, or those of one resource group. */
export const agentsQuery = ({ api, visible }: Host, polling: Polling, group = '') =>
  queryOptions({
    queryKey: [...keys.agents, 'all', group],
    queryFn: async ({ signal }) => {
      const found: Agent[] = [];
      let after = '';
      do {
        const query = {
          limit: NODES_AT_ONCE,
          ...(group ? { resource_group: group } : {}),
          ...(after ? { after } : {})
        };
        const page = await unwrap(api.GET('/api/agents', { params: { query }, signal }));
        found.push(...page.items);
        after = page.next ?? '';
      } while (after);
      return found;
    },
    refetchInterval: polling,
    enabled: visible
  });

/** One node, by its id or name. */
export const agentQuery = ({ api, visible }: Host, reference: string, polling: Polling) =>
  queryOptions({
    queryKey: [...keys.agents, 'one', reference],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/agents/{reference}', { params: { path: { reference } }, signal })),
    refetchInterval: polling,
    enabled: visible
  });

export function terminateSession({ api }: Host, id: string): Promise<Session> {
  return unwrap(
    api.POST('/api/sessions/{session_id}/terminate', {
      params: { path: { session_id: id } },
      body: { force: false }
    })
  );
}
