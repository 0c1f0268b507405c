/** What a batch job is asked for with, as it is typed, and what is wrong with it. */
import { parseDuration, writeDuration } from '../durations';
import type { Wish } from './wish';

export interface BatchState {
  command: string;
  /** One `NAME=value` on each line. */
  environ: string;
  /** Names or identifiers, with commas or spaces between. */
  after: string;
  /** As `<input type="datetime-local">` has it: in the reader's own time. */
  starts: string;
  timeout: string;
  attempts: string;
  cluster: string;
  tag: string;
}

export const NO_BATCH: BatchState = {
  command: '',
  environ: '',
  after: '',
  starts: '',
  timeout: '',
  attempts: '',
  cluster: '',
  tag: ''
};

export function startBatch(given: Partial<Wish>): BatchState {
  const { batch_timeout: timeout, max_attempts: attempts, cluster_size: cluster } = given;
  return {
    command: given.startup_command ?? '',
    environ: Object.entries(given.environ ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join('\n'),
    after: (given.dependencies ?? []).join(', '),
    starts: given.starts_at ? toLocal(given.starts_at) : '',
    timeout: timeout ? writeDuration(timeout) : '',
    attempts: attempts && attempts > 1 ? String(attempts) : '',
    cluster: cluster && cluster > 1 ? String(cluster) : '',
    tag: given.tag ?? ''
  };
}

/** `2026-01-31T18:00` in the reader's own time, of a moment anywhere. */
function toLocal(iso: string): string {
  const moment = new Date(iso);
  if (Number.isNaN(moment.getTime())) {
    return '';
  }
  const shifted = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** By field, the key of what to say about it. */
export function findBatchErrors(state: BatchState): Partial<Record<keyof BatchState, string>> {
  const errors: Partial<Record<keyof BatchState, string>> = {};
  if (!state.command.trim()) {
    errors.command = 'launchPage.commandMissing';
  }
  if (readLines(state.environ).some(([name]) => !NAME.test(name))) {
    errors.environ = 'launchPage.environWrong';
  }
  const timeout = state.timeout.trim();
  if (timeout && !parseDuration(timeout)) {
    errors.timeout = 'launchPage.timeoutWrong';
  }
  for (const field of ['attempts', 'cluster'] as const) {
    const text = state[field].trim();
    if (text && !/^[1-9]\d{0,2}$/.test(text)) {
      errors[field] = 'launchPage.countWrong';
    }
  }
  return errors;
}

function readLines(text: string): [string, string][] {
  return text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .map(line => {
      const at = line.indexOf('=');
      return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1)];
    });
}

/** What of a request the fields stand for; what is empty is left to the service. */
export function writeBatch(state: BatchState): Partial<Wish> {
  const { timeout, starts, tag } = state;
  const after = state.after.split(/[\s,]+/).filter(each => each !== '');
  const count = (text: string): number => Number(text.trim() || '1');
  const limit = timeout.trim() ? parseDuration(timeout) : null;
  const begins = starts ? new Date(starts) : null;
  return {
    type: 'batch',
    startup_command: state.command.trim(),
    environ: Object.fromEntries(readLines(state.environ)),
    dependencies: after,
    max_attempts: count(state.attempts),
    cluster_size: count(state.cluster),
    ...(limit ? { batch_timeout: limit } : {}),
    ...(begins && !Number.isNaN(begins.getTime()) ? { starts_at: begins.toISOString() } : {}),
    ...(tag.trim() ? { tag: tag.trim() } : {})
  };
}
