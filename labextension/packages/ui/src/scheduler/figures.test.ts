import { expect, test } from 'vitest';
import { COMPONENTS } from '../admin/components';
import { readLabels } from '../agents/AgentPage';
import { timesIn } from '../nouns/panels/PresetRoom';
import { everyDay } from './SharesPage';
import { NOTHING, readWeights, toRequest } from './SimulatePage';
import { along } from './SimulationResult';

const QUESTION = NOTHING;

test('days on which nothing was used are shown as such', () => {
  const days = everyDay([{ day: '2026-03-02', hours: { cpu: 4 } }], 3);

  expect(days).toEqual([
    { day: '2026-02-28', hours: {} },
    { day: '2026-03-01', hours: {} },
    { day: '2026-03-02', hours: { cpu: 4 } }
  ]);
});

test('a question says only what would be different', () => {
  expect(toRequest(QUESTION)).toEqual({ usual_run_time: 14_400 });
  expect(
    toRequest({
      ...QUESTION,
      drain: 'gpu-03',
      slots: { 'cuda.device': '8' },
      count: '2',
      weights: 'vision=2',
      preemption: 'on',
      rules: { mode: 'reschedule', order: '' },
      minRuntime: '10m'
    })
  ).toEqual({
    usual_run_time: 14_400,
    drain: ['gpu-03'],
    add: [{ slots: { 'cuda.device': '8' }, count: 2, run_time: 3600, project: 'default' }],
    weights: { vision: 2 },
    preemption: { mode: 'reschedule', enabled: true, min_runtime: 600 }
  });
});

test('a question says who asks, and what others would be guaranteed', () => {
  const quota = {
    scope: 'project' as const,
    name: 'default:vision',
    guaranteed: { 'cuda.device': '4' },
    maximum: { cpu: 'inf', mem: '1g' }
  };

  expect(
    toRequest({
      ...QUESTION,
      slots: { cpu: '1' },
      owner: 'grace',
      group: 'gpu',
      submit: '10m',
      jobPriority: '-5',
      preemptible: false,
      quotas: [quota]
    })
  ).toMatchObject({
    add: [
      {
        slots: { cpu: '1' },
        owner: 'grace',
        resource_group: 'gpu',
        submit: 600,
        job_priority: -5,
        preemptible: false
      }
    ],
    quotas: [
      {
        scope: 'project',
        name: 'default:vision',
        guaranteed: { 'cuda.device': '4' },
        maximum: { cpu: null, mem: '1g' }
      }
    ]
  });
  expect(toRequest({ ...QUESTION, quotas: [{ ...quota, name: '' }] })).toBeNull();
  expect(toRequest({ ...QUESTION, jobPriority: 'high' })).toBeNull();
});

test('a question that cannot be meant is not asked', () => {
  expect(toRequest({ ...QUESTION, weights: 'vision=none' })).toBeNull();
  expect(toRequest({ ...QUESTION, slots: { cpu: '' } })).toBeNull();
  expect(toRequest({ ...QUESTION, usual: 'long' })).toBeNull();
  expect(readWeights('vision = 2, speech=0.5')).toEqual({ vision: 2, speech: 0.5 });
});

test('between two points the earlier one holds, and after the last nothing is known', () => {
  const points = [
    { at: 0, waiting: 1, used: 0.5 },
    { at: 10, waiting: 3, used: 1 }
  ];

  expect(along([0, 5, 10, 15], points, 'waiting')).toEqual([1, 1, 3, null]);
});

test('a preset fits as often as its scarcest amount', () => {
  const remaining = { cpu: '8', mem: '10g' };

  expect(timesIn({ remaining }, { cpu: '2', mem: '4g' })).toBe(2);
  expect(timesIn({ remaining }, { cpu: '2', 'cuda.device': '1' })).toBe(0);
  expect(timesIn({ remaining }, {})).toBe(0);
});

test('labels are read from lines', () => {
  expect(readLabels('rack=a1\nzone = b')).toEqual({ rack: 'a1', zone: 'b' });
  expect(readLabels('rack')).toBeNull();
  expect(readLabels('')).toEqual({});
});

test.each(COMPONENTS)(
  '$name is told as it is installed',
  async ({ name, version, licence }) => {
    const { readFileSync } = await import('node:fs');
    const place = new URL(`../../../../node_modules/${name}/package.json`, import.meta.url);
    const installed = JSON.parse(readFileSync(place, 'utf8')) as {
      version: string;
      license: string;
    };

    expect([installed.version, installed.license]).toEqual([version, licence]);
  }
);
