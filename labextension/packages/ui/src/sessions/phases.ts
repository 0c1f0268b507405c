/** The stages of a session's life, and how long each of them took. */
import type { EventMessage, Session } from '@backendai/api';
import { isEnded } from './status';

export type PhaseName = 'waiting' | 'starting' | 'running' | 'stopping';

export interface Phase {
  name: PhaseName;
  /** Milliseconds since 1970. */
  from: number;
  /** Null while it is going on. */
  to: number | null;
}

const read = (iso: string | null | undefined): number | null => (iso ? Date.parse(iso) : null);

/** Nothing of what has not been reached yet; phases that took no time are left out. */
export function phasesOf(session: Session, events: readonly EventMessage[] = []): Phase[] {
  const created = Date.parse(session.created_at);
  const scheduled = read(session.scheduled_at);
  const started = read(session.started_at);
  const ended = read(session.ended_at);
  const stopping = read(
    [...events].reverse().find(event => event.status === 'TERMINATING')?.at ?? null
  );
  const marks: [PhaseName, number | null][] = [
    ['waiting', created],
    ['starting', scheduled],
    ['running', started],
    ['stopping', isEnded(session.status) || session.status === 'TERMINATING' ? stopping : null]
  ];
  const reached = marks.filter((mark): mark is [PhaseName, number] => mark[1] !== null);
  return reached
    .map(([name, from], index) => ({ name, from, to: reached[index + 1]?.[1] ?? ended }))
    .filter(({ from, to }) => to === null || to > from);
}

/** How much of the line each phase takes: what took seconds is still to be seen. */
export function sharesOf(phases: readonly Phase[], now: number): number[] {
  const lengths = phases.map(({ from, to }) => Math.max(0, (to ?? now) - from));
  const sum = lengths.reduce((one, other) => one + other, 0);
  const least = 0.06;
  const grown = lengths.map(length => Math.max(least, sum ? length / sum : 1));
  const all = grown.reduce((one, other) => one + other, 0);
  return grown.map(each => each / all);
}
