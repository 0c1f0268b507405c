/** Which sessions a list shows, and how one event changes a page of them. */
import type { EventMessage, Session, SessionPage, ShownSession } from '@backendai/api';
import { isEnded, isQueued } from './status';

export type StatusFilter = 'live' | 'ended' | 'all';
/** What the service sorts by, with a `-` before it for the other way round. */
export type Order = string;

export const ROWS = 20;

/** What the service calls all owners, for those who may see them. */
export const EVERYBODY = '*';

export interface SessionsView {
  /** A {@link StatusFilter}, or one state. */
  status: string;
  order: Order;
  /** A user's name, or {@link EVERYBODY}. Empty until it is known who asks. */
  owner: string;
  /** The cursor the page begins after; empty for the first one. */
  after: string;
  limit: number;
  /** Part of a name. Empty, as everything below, where nothing is narrowed. */
  search?: string;
  type?: string;
  project?: string;
  group?: string;
}

/** What most people look at first, most of the time. */
export function firstLivePage(owner: string): SessionsView {
  return { status: 'live', order: '-created_at', owner, after: '', limit: ROWS };
}

/** Whether *session* is one of those that *view* shows, on whichever page. */
export function belongs(session: Session, view: SessionsView): boolean {
  const { owner, type, project, group, search } = view;
  const wanted: [string | undefined, string | null][] = [
    [owner === EVERYBODY ? '' : owner, session.owner],
    [type, session.type],
    [project, session.project],
    [group, session.resource_group ?? null]
  ];
  if (wanted.some(([asked, is]) => asked && asked !== is)) {
    return false;
  }
  const part = search?.toLowerCase() ?? '';
  const names = [session.name, session.tag ?? ''].map(name => name.toLowerCase());
  const found = names.some(name => name.includes(part)) || session.id.startsWith(part);
  return found && hasStatus(session, view.status);
}

function hasStatus({ status }: Session, wanted: string): boolean {
  const periods: Record<string, boolean> = {
    all: true,
    live: !isEnded(status),
    ended: isEnded(status)
  };
  return periods[wanted] ?? status === wanted;
}

/**
 * Put what an event says into a cached page.
 *
 * Returns the same page when nothing changes and null when only the service can
 * tell what the page looks like now. A row that no longer matches the filter stays
 * until the next load: whoever watched it should see how it ended.
 */
export function applyEvent(
  page: SessionPage,
  view: SessionsView,
  event: EventMessage
): SessionPage | null {
  if (!event.session_id) {
    return page;
  }
  const index = page.items.findIndex(row => row.id === event.session_id);
  const known = page.items[index];
  const session = event.session;
  if (!session) {
    return known ? null : page;
  }
  if (known) {
    return session.revision <= known.revision
      ? page
      : { ...page, items: page.items.with(index, session) };
  }
  if (!belongs(session, view)) {
    return page;
  }
  if (view.order !== '-created_at') {
    return null;
  }
  return insertNewest(page, view, session);
}

function insertNewest(
  page: SessionPage,
  view: SessionsView,
  session: Session
): SessionPage | null {
  const oldest = page.items.at(-1);
  if (oldest && page.next && session.created_at < oldest.created_at) {
    return page; // it belongs to a later page
  }
  if (view.after) {
    return page; // newer than this page: its cursor keeps it where it is
  }
  const at = page.items.findIndex(row => row.created_at <= session.created_at);
  const items = page.items.toSpliced(at < 0 ? page.items.length : at, 0, session);
  // Cutting a row off would need a new cursor, which only the service can make.
  return items.length > view.limit ? null : { ...page, items };
}

/**
 * Bring what the page of one session shows up to date with what an event carries.
 *
 * Events do not tell everything that an answer about one session does: what they leave
 * out stays as it was.
 */
export function updateShown(old: ShownSession, session: Session): ShownSession {
  if (session.revision <= old.revision) {
    return old;
  }
  const { cluster_network, idle_expires_at, mounts, why } = old;
  const containers = session.containers?.length ? session.containers : old.containers;
  return { ...session, cluster_network, idle_expires_at, containers, mounts, why };
}

/** Show a stop at once; the event that confirms it has a higher revision. */
export function markStopping(page: SessionPage, id: string): SessionPage {
  return {
    ...page,
    items: page.items.map(row =>
      row.id === id
        ? { ...row, status: isQueued(row.status) ? 'CANCELLED' : 'TERMINATING', reason: '' }
        : row
    )
  };
}

/** Say that a session is held as the service is going to say it. */
export function describeHold(reason: string, isOwn: boolean): string {
  const since = new Date().toISOString().slice(0, 16).replace('T', ' ');
  return `held by ${isOwn ? 'its owner' : 'admin'} since ${since} UTC: ${reason}`;
}

/** Show at once what a verb changes of a session. */
export function markChanged(
  page: SessionPage,
  id: string,
  changes: Partial<Session>
): SessionPage {
  const items = page.items.map(row => (row.id === id ? { ...row, ...changes } : row));
  return { ...page, items };
}

/** Put the service's answer in, unless an event has told more already. */
export function replaceSession(page: SessionPage, session: Session): SessionPage {
  return {
    ...page,
    items: page.items.map(row =>
      row.id === session.id && row.revision <= session.revision ? session : row
    )
  };
}
