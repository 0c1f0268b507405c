/** Every question the pages ask the service, and the cache keys of the answers. */
import { ApiError, unwrap, type Session } from '@backendai/api';
import { keepPreviousData, QueryClient, queryOptions } from '@tanstack/react-query';
import type { Host } from './host';
import { EVERYBODY, type SessionsView } from './sessions/view';

const MAX_TRIES = 3;

export const keys = {
  me: ['me'] as const,
  agents: ['agents'] as const,
  sessions: ['sessions'] as const,
  page: (view: SessionsView) => ['sessions', view] as const,
  session: (id: string) => ['session', id] as const,
  history: (id: string) => ['session', id, 'history'] as const,
  /** Written by the event stream alone. */
  why: (id: string) => ['why', id] as const
};

/** A cache that asks again only where asking again can help. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        retry: (failures, error) =>
          failures < MAX_TRIES &&
          (!(error instanceof ApiError) || error.status === 0 || error.status >= 500)
      }
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

export const pageQuery = ({ api, visible }: Host, view: SessionsView, polling: boolean) =>
  queryOptions({
    queryKey: keys.page(view),
    queryFn: ({ signal }) => {
      const { status, order, owner, after, limit } = view;
      const query = {
        status,
        order,
        limit,
        // Without an owner the service answers with one's own.
        ...(owner === EVERYBODY ? { owner } : {}),
        ...(after ? { after } : {})
      };
      return unwrap(api.GET('/api/sessions', { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: polling ? POLL : false,
    enabled: visible
  });

/** How often to look while the event stream is down; never while the page is hidden. */
const POLL = 5000;

export const sessionQuery = ({ api, visible }: Host, id: string, polling: boolean) =>
  queryOptions({
    queryKey: keys.session(id),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/sessions/{session_id}', { params: { path: { session_id: id } }, signal })
      ),
    refetchInterval: polling ? POLL : false,
    enabled: visible
  });

export const historyQuery = ({ api, visible }: Host, id: string, polling: boolean) =>
  queryOptions({
    queryKey: keys.history(id),
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/api/sessions/{session_id}/events', {
          params: { path: { session_id: id } },
          signal
        })
      ),
    refetchInterval: polling ? POLL : false,
    enabled: visible
  });

const NODE_NEWS = 10_000;

export const agentsQuery = ({ api, visible }: Host) =>
  queryOptions({
    queryKey: keys.agents,
    queryFn: ({ signal }) => unwrap(api.GET('/api/agents', { signal })),
    refetchInterval: NODE_NEWS,
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
