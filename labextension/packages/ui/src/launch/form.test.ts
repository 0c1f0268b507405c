import { describe, expect, test } from 'vitest';
import { makeGroup, makePreset, makeResources } from '../testing';
import {
  chooseImage,
  choosePlace,
  choosePreset,
  findErrors,
  formSlots,
  hasPreset,
  startState,
  stepAmount,
  toSpec,
  typeAmount
} from './form';

const resources = makeResources();
const fresh = startState(resources, {});

describe('the launch form', () => {
  test('begins with what the first environment prefers', () => {
    expect(toSpec(fresh)).toEqual({
      image: 'python',
      name: null,
      project: null,
      resource_group: null,
      slots: { cpu: '2', mem: '2g' },
      shmem: null,
      mounts: []
    });
  });

  test('begins with an environment that some node has', () => {
    const [first, second] = resources.images;
    const images = [{ ...first, installed: false }, second] as typeof resources.images;

    expect(startState({ ...resources, images }, {}).image).toBe('torch');
  });

  test('begins with less where no node has what is preferred', () => {
    const [python] = resources.images;
    const preferred = { cpu: '64', mem: '2g', 'cuda.device': '8' };
    const images = [{ ...python, preferred }] as typeof resources.images;
    const small = makeResources({ images });

    expect(toSpec(startState(small, {})).slots).toEqual({
      cpu: '8',
      mem: '2g',
      'cuda.device': '1'
    });
    const empty = { ...small, nodes: 0, room: [] };
    expect(toSpec(startState(empty, {})).slots).toEqual({ cpu: '64', mem: '2g' });
  });

  test('never begins with less than an environment needs', () => {
    const [python] = resources.images;
    const images = [{ ...python, minimum: { cpu: '32' }, preferred: {} }];
    const fresh = startState(makeResources({ images: images as typeof resources.images }), {});

    expect(toSpec(fresh).slots).toEqual({ cpu: '32', mem: '1g' });
  });

  test('begins with what was chosen the last time', () => {
    const given = { image: 'torch', name: 'train', slots: { mem: '12g' }, shmem: '2g' };

    expect(toSpec(startState(resources, given))).toMatchObject({
      image: 'torch',
      name: 'train',
      slots: { cpu: '4', mem: '12g', 'cuda.device': '1' },
      shmem: '2g'
    });
  });

  test('offers the accelerators that any node has', () => {
    const gone = { slot: 'rocm.device', total: '0', free: '0', largest: '0', most: '0' };
    const more = makeResources({ room: [...resources.room, gone] });

    expect(formSlots(more)).toEqual(['cpu', 'mem', 'cuda.device']);
    expect(formSlots(makeResources({ room: [] }))).toEqual(['cpu', 'mem']);
  });

  test('another environment brings its own amounts, but not over typed ones', () => {
    const typed = typeAmount(fresh, 'cpu', '3');

    expect(toSpec(chooseImage(typed, 'torch', resources)).slots).toEqual({
      cpu: '3',
      mem: '8g',
      'cuda.device': '1'
    });
  });

  test('tells that none is wanted of what the environment prefers', () => {
    const torch = startState(resources, { image: 'torch' });

    expect(toSpec(stepAmount(torch, 'cuda.device', -1)).slots['cuda.device']).toBe('0');
    expect(toSpec(fresh).slots).not.toHaveProperty('cuda.device');
  });

  test('memory is typed in GiB, with a comma or a point', () => {
    expect(toSpec(typeAmount(fresh, 'mem', '1,5')).slots.mem).toBe('1536m');
    expect(toSpec(typeAmount(fresh, 'mem', '2.25')).slots.mem).toBe('2304m');
  });

  test('every whole MiB is kept exactly', () => {
    const kept = (shmem: string): string | null =>
      toSpec(startState(resources, { shmem })).shmem;

    expect(['1m', '64m', '96m', '1023m', '1025m'].map(kept)).toEqual([
      '1m',
      '64m',
      '96m',
      '1023m',
      '1025m'
    ]);
    expect(toSpec(typeAmount(fresh, 'mem', '0.1')).slots.mem).toBe('107374182');
  });

  test('steps lead to round amounts', () => {
    const step = (slot: string, text: string, by: 1 | -1): string | undefined =>
      stepAmount(typeAmount(fresh, slot, text), slot, by).typed[slot];

    expect(step('mem', '0.25', 1)).toBe('1');
    expect(step('mem', '2.5', -1)).toBe('2');
    expect(step('x.shares', '0.3', 1)).toBe('0.4');
    expect(step('x.shares', '0.3', -1)).toBe('0.2');
  });

  test('steps never go below nothing', () => {
    const down = stepAmount(stepAmount(fresh, 'cuda.device', 1), 'cuda.device', -1);

    expect(stepAmount(down, 'cuda.device', -1).typed['cuda.device']).toBe('0');
    expect(stepAmount(fresh, 'x.shares', 1).typed['x.shares']).toBe('0.1');
  });
});

const several = {
  ...makeResources({
    projects: ['audio', 'vision'],
    resource_groups: ['cpus', 'gpus']
  }),
  groups: [
    makeGroup('cpus', { cpu: '2', mem: '8g' }),
    makeGroup('gpus', { cpu: '8', mem: '48g', 'cuda.device': '1' })
  ]
};

describe('where a session belongs and runs', () => {
  test('is the usual project and the first group', () => {
    expect(toSpec(startState(several, {}))).toMatchObject({
      project: 'vision',
      resource_group: 'cpus'
    });
  });

  test('is what was chosen the last time, while it is open', () => {
    const place = (project: string, resource_group: string) =>
      startState(several, { project, resource_group }).place;

    expect(place('audio', 'gpus')).toEqual({ project: 'audio', group: 'gpus' });
    expect(place('gone', 'gone')).toEqual({ project: 'vision', group: 'cpus' });
  });

  test('is left to the service where there is no choice', () => {
    const given = { project: 'audio', resource_group: 'gpus' };

    expect(toSpec(startState(resources, given))).toMatchObject({
      project: null,
      resource_group: null
    });
  });

  test('brings its own amounts, but not over typed ones', () => {
    const begun = startState(several, { image: 'torch' });
    expect(begun.typed).toMatchObject({ cpu: '2', mem: '8', 'cuda.device': '0' });

    const moved = choosePlace(typeAmount(begun, 'mem', '9'), { group: 'gpus' }, several);
    expect(moved.typed).toEqual({ cpu: '4', mem: '9', 'cuda.device': '1' });
  });
});

describe('a preset', () => {
  const gpu = makePreset({
    resource_slots: { cpu: '4', mem: '16g', 'cuda.device': '1', 'rocm.device': '2' },
    shared_memory: '1g',
    resource_group: 'gpus'
  });

  test('fills in its amounts, its shared memory and its group', () => {
    expect(toSpec(choosePreset(startState(several, {}), gpu, several))).toMatchObject({
      resource_group: 'gpus',
      slots: { cpu: '4', mem: '16g', 'cuda.device': '1' },
      shmem: '1g'
    });
  });

  test('means none of the accelerators that it does not name', () => {
    const torch = startState(resources, { image: 'torch', shmem: '2g' });
    const chosen = toSpec(choosePreset(torch, makePreset(), resources));

    expect(chosen).toMatchObject({
      slots: { cpu: '1', mem: '4g', 'cuda.device': '0' },
      shmem: '2g',
      resource_group: null
    });
  });

  test('tells no group where there is no choice', () => {
    const preset = makePreset({ resource_group: 'default' });
    const chosen = choosePreset(fresh, preset, resources);

    expect(toSpec(chosen).resource_group).toBeNull();
    expect(hasPreset(chosen, preset)).toBe(true);
  });

  test('keeps what it says nothing of', () => {
    const preset = makePreset({ resource_slots: { cpu: '1' } });

    expect(toSpec(choosePreset(fresh, preset, resources)).slots.mem).toBe('2g');
  });

  test('is the chosen one until something of it is changed', () => {
    const chosen = choosePreset(startState(several, {}), gpu, several);

    expect(hasPreset(startState(several, {}), gpu)).toBe(false);
    expect(hasPreset(chosen, gpu)).toBe(true);
    expect(hasPreset(typeAmount(chosen, 'cpu', '5'), gpu)).toBe(false);
    expect(hasPreset(choosePlace(chosen, { group: 'cpus' }, several), gpu)).toBe(false);
  });
});

describe('errors of the launch form', () => {
  const errorsOf = (slot: string, text: string): string[] =>
    findErrors(typeAmount(fresh, slot, text), resources).map(error => error.text);

  test('there is none in what it begins with', () => {
    expect(findErrors(fresh, resources)).toEqual([]);
  });

  test.each([
    ['cpu', 'many', 'launch.notNumber'],
    ['cpu', '', 'launch.notNumber'],
    ['cpu', '-1', 'launch.notNumber'],
    ['cpu', '0.5', 'launch.tooLittle'],
    ['cpu', '9', 'launch.tooMuch'],
    ['cuda.device', '0.5', 'launch.tooFine']
  ])('%s %j: %s', (slot, text, error) => {
    expect(errorsOf(slot, text)).toEqual([error]);
  });

  test('nothing is too much while nobody knows the nodes', () => {
    const empty = makeResources({ nodes: 0, room: [] });

    expect(findErrors(typeAmount(startState(empty, {}), 'cpu', '64'), empty)).toEqual([]);
  });

  test('names follow the rule of the service', () => {
    const named = (name: string): number => findErrors({ ...fresh, name }, resources).length;

    expect(['a', 'train-1', 'A.b_c', 'x'.repeat(64)].map(named)).toEqual([0, 0, 0, 0]);
    expect(['-a', 'a-', 'a b', 'é', 'x'.repeat(65)].map(named)).toEqual([1, 1, 1, 1, 1]);
  });
});
