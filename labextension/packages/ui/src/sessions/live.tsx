/** What the event stream tells, written into the query cache. */
import type {
  EventMessage,
  ServerEvent,
  SessionPage,
  ShownSession,
  StreamState
} from '@backendai/api';
import { useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { applyAnnouncement, distrustAnnounced } from '../announced';
import { applyFolderEvent, distrust } from '../data/live';
import { useHost } from '../host';
import { keys, leavePlace } from '../queries';
import { StreamProvider } from '../stream';
import { readFact } from './ends';
import { mergeUsage, type LiveUsage, type UsageMap } from './measured';
import { applyEvent, updateShown, type SessionsView } from './view';

export function LiveSessions({ children }: { children: ReactNode }): JSX.Element {
  const { listen, visible } = useHost();
  const client = useQueryClient();
  const [state, setState] = useState<StreamState>('connecting');
  useEffect(
    () =>
      visible
        ? listen({
            everything: true,
            onEvent: event => receive(client, event),
            onState: next => {
              setState(next);
              if (next === 'live') {
                // What happened between the last answer and this stream is in no event.
                void client.invalidateQueries({ queryKey: keys.sessions });
                void client.invalidateQueries({ queryKey: ['session'] });
                distrust(client);
                distrustAnnounced(client);
              }
            }
          })
        : undefined,
    [client, listen, visible]
  );
  return <StreamProvider value={state}>{children}</StreamProvider>;
}

function receive(client: QueryClient, received: ServerEvent): void {
  if (received.event === 'usage') {
    receiveUsage(client, received);
    return;
  }
  if (received.event === 'changed') {
    receiveAnnouncement(client, received);
    return;
  }
  const event = readFact(received);
  if (event) {
    applyToCache(client, event);
  }
}

function receiveUsage(client: QueryClient, received: ServerEvent): void {
  try {
    const batch = JSON.parse(received.data) as LiveUsage;
    client.setQueryData<UsageMap>(keys.usage, old => mergeUsage(old, batch));
  } catch {
    return; // a newer service may say it in another way
  }
}

function receiveAnnouncement(client: QueryClient, received: ServerEvent): void {
  try {
    const { kinds, logs } = JSON.parse(received.data) as { kinds: string[]; logs?: string[] };
    applyAnnouncement(client, kinds, logs);
  } catch {
    return; // a newer service may say it in another way
  }
}

/** Bring every cached answer up to date with one event. */
export function applyToCache(client: QueryClient, event: EventMessage): void {
  applyFolderEvent(client, event);
  for (const [key, page] of client.getQueriesData<SessionPage>({ queryKey: keys.sessions })) {
    const view = key[1] as SessionsView | undefined;
    if (!page || !view) {
      continue;
    }
    const next = applyEvent(page, view, event);
    if (next === null) {
      void client.invalidateQueries({ queryKey: key });
    } else if (next !== page) {
      client.setQueryData(key, next);
    }
  }
  if (!event.session_id) {
    return;
  }
  const { session_id: id, session } = event;
  if (event.why || session?.status !== 'PENDING') {
    client.setQueryData(keys.why(id), event.why);
  }
  if (session) {
    leavePlace(client, session);
  }
  if (session) {
    const key = keys.session(id);
    const old = client.getQueryData<ShownSession>(key);
    if (old) {
      client.setQueryData(key, updateShown(old, session));
    }
    if (old && old.status !== session.status) {
      // Containers and their network come and go with it, and no event tells them.
      void client.invalidateQueries({ queryKey: key, exact: true });
    }
  }
  client.setQueryData<EventMessage[]>(keys.history(id), old =>
    old && !old.some(known => known.seq === event.seq) ? [...old, event] : old
  );
}
