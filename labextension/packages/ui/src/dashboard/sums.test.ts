import { expect, test } from 'vitest';
import type { LiveSession } from '../sessions/measured';
import { append, sumBefore, sumUp } from './sums';

const columns = (time: number[], cpu: (number | null)[]) => ({
  time,
  cpu,
  memory: cpu.map(value => (value === null ? null : value * 100)),
  utilization: cpu.map(() => null)
});

test('what sessions have used before is put together by time', () => {
  const one = columns([1001, 1006, 1011, 1016], [1, 2, 3, 4]);
  const other = columns([1013, 1018], [10, 20]);

  expect(sumBefore([one, other], 1020)).toEqual([
    { time: 1000, cpu: 2, memory: 200, utilization: null },
    { time: 1010, cpu: 24, memory: 2400, utilization: null }
  ]);
});

test('the past ends where the present begins, and is ten minutes long', () => {
  const long = columns([100, 1395, 1405, 1995, 2005], [1, 2, 3, 4, 5]);

  expect(sumBefore([long], 2004).map(({ time, cpu }) => [time, cpu])).toEqual([
    [1400, 3],
    [1990, 4]
  ]);
});

test('there is nothing before when nobody has measured', () => {
  expect(sumBefore([], 1000)).toEqual([]);
  expect(sumBefore([columns([], [])], 1000)).toEqual([]);
});

test('what is told twice is drawn once', () => {
  const use = sumUp({ a: { session_id: 'a', at: 10, cpu: 1 } as LiveSession });
  const points = append([], use);

  expect(append(points, use)).toBe(points);
  expect(append(points, sumUp({}))).toBe(points);
});
