/** What all of one's sessions use together, as it goes on. */
import type { Schemas } from '@backendai/api';
import type { LiveSession, UsageMap } from '../sessions/measured';

export interface Sum {
  /** Seconds since 1970. */
  time: number;
  cpu: number | null;
  memory: number | null;
  utilization: number | null;
}

/** So many points are drawn: ten minutes, of one every five seconds. */
const MOST = 120;

/** Null where nobody has measured anything of it. */
export function sumUp(usage: UsageMap): Sum | null {
  const all = Object.values(usage);
  if (all.length === 0) {
    return null;
  }
  const known = (values: (number | null | undefined)[]): number[] =>
    values.filter(value => typeof value === 'number');
  const sum = (values: number[]): number | null =>
    values.length ? values.reduce((one, other) => one + other, 0) : null;
  const busy = known(all.map(each => each.utilization));
  const total = sum(busy);
  return {
    time: Math.max(...all.map(each => each.at)),
    cpu: sum(known(all.map(each => each.cpu))),
    memory: sum(known(all.map(each => each.memory))),
    utilization: total === null ? null : total / busy.length
  };
}

type Columns = Pick<Schemas['UsageSeries'], 'time' | 'cpu' | 'memory' | 'utilization'>;

/** What was measured is put together by so many seconds; nodes measure more often. */
const STEP = 10;
/** So many seconds of before are drawn. */
const BEFORE = 600;

/** What several sessions have used together before a moment, as far as it is kept. */
export function sumBefore(all: readonly Columns[], moment: number): Sum[] {
  const steps = new Map<number, UsageMap>();
  const until = Math.floor(moment / STEP);
  all.forEach((columns, index) =>
    columns.time.forEach((time, row) => {
      const step = Math.floor(time / STEP);
      if (step < until && step >= until - BEFORE / STEP) {
        const one = {
          session_id: String(index),
          at: step * STEP,
          cpu: columns.cpu[row] ?? null,
          memory: columns.memory[row] ?? null,
          utilization: columns.utilization[row] ?? null
        } as LiveSession;
        steps.set(step, { ...steps.get(step), [index]: one });
      }
    })
  );
  return [...steps.keys()]
    .sort((one, other) => one - other)
    .map(step => sumUp(steps.get(step) ?? {}))
    .filter(sum => sum !== null);
}

/** The points so far, with one more if it is later than they are. */
export function append(points: readonly Sum[], next: Sum | null): readonly Sum[] {
  const last = points.at(-1);
  if (!next || (last && next.time - last.time < 1)) {
    return points;
  }
  return [...points, next].slice(-MOST);
}
