import type { Agent } from '@backendai/api';
import { expect, test } from 'vitest';
import { cellsOf } from './HeatStrip';
import { narrowest } from './limits';

const limit = (scope: string, slot: string, used: string, cap: string | null) => ({
  scope,
  name: `${scope}-1`,
  slot,
  used,
  cap
});

test('of several limits the one that leaves the least counts', () => {
  const found = narrowest({
    limits: [
      limit('domain', 'cpu', '10', '100'),
      limit('project', 'cpu', '10', '16'),
      limit('user', 'cpu', '1', '8'),
      limit('user', 'mem', '1g', null),
      limit('project', 'mem', '31g', '32g')
    ]
  });

  expect(found.map(({ slot, scope, left }) => [slot, scope, left])).toEqual([
    ['cpu', 'project', 6],
    ['mem', 'project', 2 ** 30]
  ]);
});

test('a limit that is used up leaves nothing, not less', () => {
  const [found] = narrowest({ limits: [limit('user', 'cpu', '9', '8')] });

  expect(found?.left).toBe(0);
});

test('a node is its devices, and its processors where it has none', () => {
  const agent = { name: 'gpu-01', usage: null } as Agent;
  expect(cellsOf(agent)).toEqual([{ key: 'cpu', name: 'gpu-01 CPU', share: null }]);

  const device = { name: 'GPU-1', model: 'H100', slices: [], utilization: 0.5 };
  const busy = { ...agent, usage: { devices: [device] } } as unknown as Agent;
  expect(cellsOf(busy)).toEqual([{ key: 'GPU-1 ', name: 'H100 GPU-1', share: 0.5 }]);
});
