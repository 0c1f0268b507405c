/** What the states of a session mean to the one who looks at them. */
import type { Session, SessionStatus } from '@backendai/api';

export type Tone = 'success' | 'progress' | 'neutral' | 'warning' | 'error';

const TONES: Record<SessionStatus, Tone> = {
  PENDING: 'warning',
  RESERVED: 'warning',
  SCHEDULED: 'progress',
  PREPARING: 'progress',
  PULLING: 'progress',
  CREATING: 'progress',
  RUNNING: 'success',
  PREEMPTED: 'warning',
  RESCHEDULING: 'progress',
  TERMINATING: 'progress',
  TERMINATED: 'neutral',
  ERROR: 'error',
  CANCELLED: 'neutral'
};

/** Every state that this page knows. */
export const STATUSES = Object.keys(TONES) as SessionStatus[];

export function toneOf(status: SessionStatus): Tone {
  // A newer service may know states that this page has never heard of.
  return TONES[status] ?? 'neutral';
}

const QUEUED: readonly SessionStatus[] = ['PENDING', 'RESERVED'];

/** Whether it has not begun and waits, so that stopping it takes it out of the queue. */
export function isQueued(status: SessionStatus | undefined): boolean {
  return status !== undefined && QUEUED.includes(status);
}

const TERMINAL: readonly SessionStatus[] = ['TERMINATED', 'ERROR', 'CANCELLED'];

export function isEnded(status: SessionStatus): boolean {
  return TERMINAL.includes(status);
}

export function canStop(status: SessionStatus): boolean {
  return !isEnded(status) && status !== 'TERMINATING';
}

/** What became of a job; only one that somebody stopped does not say. */
const OUTCOMES = {
  success: 'session.succeeded',
  failure: 'status.ERROR',
  undefined: 'session.stopped'
} as const;

/** The word for how a session is, in the catalogue. */
export function wordOf({ status, type, result }: Session) {
  const isOver = status === 'TERMINATED' && type === 'batch';
  return isOver ? OUTCOMES[result] : (`status.${status}` as const);
}

/** Whether people reach it: who makes room answers until it is gone, so that they save. */
export function canOpen(status: SessionStatus): boolean {
  return status === 'RUNNING' || status === 'PREEMPTED';
}
