/** Why a session waits, as it was told last: by its page's answer, or by the stream. */
import type { QueuePlace, Session, ShownSession, Why } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { keys } from '../queries';

/** The later one of two explanations; what has no time was asked for just now. */
export function laterWhy(one: Why | null, other: Why | null): Why | null {
  if (!one || !other) {
    return one ?? other;
  }
  return (other.at ?? '9') > (one.at ?? '9') ? other : one;
}

/** Why *session* waits, kept up to date by the stream; null once it has moved on. */
export function useWhy(session: Session | ShownSession): Why | null {
  // Only the stream writes it: there is nobody to ask.
  const { data } = useQuery<Why | null>({
    queryKey: keys.why(session.id),
    queryFn: () => null,
    enabled: false
  });
  if (session.status !== 'PENDING') {
    return null;
  }
  return laterWhy('why' in session ? session.why : null, data ?? null);
}

/** Where *session* stands in the queue: as its list was told, or the stream since then. */
export function usePlace(session: Session | ShownSession): QueuePlace | null {
  const why = useWhy(session);
  const { data } = useQuery<QueuePlace | null>({
    queryKey: keys.place(session.id),
    queryFn: () => null,
    enabled: false
  });
  if (session.status !== 'PENDING') {
    return null;
  }
  // What has no time was asked for just now.
  const at = why?.at ?? '9';
  if (why?.position && why.waiting && (!data || at >= data.at)) {
    return { position: why.position, waiting: why.waiting, at };
  }
  return why && data && at >= data.at ? null : (data ?? null);
}
