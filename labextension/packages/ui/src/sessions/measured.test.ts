import type { Schemas } from '@backendai/api';
import { describe, expect, test } from 'vitest';
import { append, sumUp } from '../dashboard/sums';
import { mergeUsage, shareOf, type LiveSession, type LiveUsage } from './measured';
import { joinUsage } from './UsageCharts';

function use(id: string, at: number, changes: Partial<LiveSession> = {}): LiveSession {
  const nothing = Object.fromEntries(
    ['cpu', 'cpu_limit', 'memory', 'memory_limit', 'utilization'].map(key => [key, null])
  );
  return { ...nothing, session_id: id, at, devices: [], ...changes } as unknown as LiveSession;
}

const batch = (at: number, ...items: LiveSession[]): LiveUsage => ({ at, items, nodes: [] });

describe('what sessions use', () => {
  test('is the latest of each', () => {
    const first = mergeUsage(undefined, batch(10, use('a', 10, { cpu: 1 }), use('b', 10)));
    const next = mergeUsage(first, batch(12, use('a', 12, { cpu: 2 })));

    expect(Object.keys(next).sort()).toEqual(['a', 'b']);
    expect(next.a?.cpu).toBe(2);
  });

  test('is not known any more once nobody has told it for a while', () => {
    const old = mergeUsage(undefined, batch(10, use('a', 10)));

    expect(mergeUsage(old, batch(31, use('b', 31)))).not.toHaveProperty('a');
  });

  test('has no share where there is no limit, and never more than all of it', () => {
    expect(shareOf(1, null)).toBeNull();
    expect(shareOf(null, 4)).toBeNull();
    expect(shareOf(5, 4)).toBe(1);
  });

  test('adds up, without counting as nothing what is not known', () => {
    const usage = mergeUsage(
      undefined,
      batch(10, use('a', 9, { cpu: 1, utilization: 0.5 }), use('b', 10, { cpu: 0.5 }))
    );

    expect(sumUp(usage)).toEqual({ time: 10, cpu: 1.5, memory: null, utilization: 0.5 });
    expect(sumUp({})).toBeNull();
  });

  test('is one point for each measurement', () => {
    const point = (time: number) => ({ time, cpu: 1, memory: 1, utilization: null });
    const points = append([point(10)], point(10.4));

    expect(points).toHaveLength(1);
    expect(append(points, point(15))).toHaveLength(2);
    expect(append(points, null)).toBe(points);
  });
});

type Usage = Schemas['SessionUsage'];

function usage(time: number[], cpu: (number | null)[], more: Partial<Usage> = {}): Usage {
  const none = { memory: [], read_rate: [], write_rate: [], receive_rate: [], send_rate: [] };
  return {
    session_id: 'a',
    kept_from: 0,
    kept_seconds: 100,
    now: null,
    totals: null,
    devices: [],
    containers: [],
    series: { time, cpu, ...none, utilization: [], device_memory: [] },
    ...more
  } as Usage;
}

describe('the lines of one session', () => {
  test('go on with what is new', () => {
    const joined = joinUsage(usage([1, 2], [0.1, 0.2]), usage([2, 3], [0.2, 0.3]));

    expect(joined.series.time).toEqual([1, 2, 3]);
    expect(joined.series.cpu).toEqual([0.1, 0.2, 0.3]);
  });

  test('lose what the service does not keep either', () => {
    const joined = joinUsage(usage([1, 150], [0.1, 0.2]), usage([200], [0.3]));

    expect(joined.series.time).toEqual([150, 200]);
    expect(joined.series.cpu).toEqual([0.2, 0.3]);
  });

  test('know nothing of before where a column begins later', () => {
    const later = usage([3], [0.3]);
    later.series.memory = [7];
    const joined = joinUsage(usage([1, 2], [0.1, 0.2]), later);

    expect(joined.series.memory).toEqual([null, null, 7]);
  });

  test('begin anew when the service has', () => {
    const joined = joinUsage(usage([1, 2], [0.1, 0.2]), usage([9], [0.9], { kept_from: 8 }));

    expect(joined.series.time).toEqual([9]);
  });
});
