import { describe, expect, test } from 'vitest';
import { makeFolder } from '../testing';
import { appearsAt, boundTo, chooseFolder, means, readMounts, writeMounts } from './mounts';

describe('folders that somebody has written', () => {
  test.each([
    ['data', { folder: 'data' }],
    ['data:ro', { folder: 'data', permission: 'ro' }],
    ['data:sets', { folder: 'data', target: 'sets' }],
    [
      'data/2026/05:/datasets/one:rw',
      { folder: 'data', subpath: '2026/05', target: '/datasets/one', permission: 'rw' }
    ]
  ])('%s', (text, wish) => {
    expect(writeMounts(readMounts([text]))).toEqual([wish]);
  });

  test('and objects, are read alike, and once', () => {
    const wish = { folder: 'data/a', subpath: 'b', target: 'x', permission: 'ro' } as const;

    expect(writeMounts(readMounts(['', wish, 'data/a/b:x:ro']))).toEqual([
      { folder: 'data', subpath: 'a/b', target: 'x', permission: 'ro' }
    ]);
  });
});

test('a part of a folder may be typed with slashes around it', () => {
  const typed = { folder: 'data', subpath: ' /2026/april/ ', target: '', permission: null };

  expect(writeMounts([typed])).toEqual([{ folder: 'data', subpath: '2026/april' }]);
  expect(writeMounts([{ ...typed, subpath: ' / ' }])).toEqual([{ folder: 'data' }]);
});

test('a folder picked from the list is sent by its id, with all its user may do', () => {
  expect(writeMounts(chooseFolder([], makeFolder('data')))).toEqual([{ folder: 'id-of-data' }]);
});

test('a folder appears by its name in the home, unless something else is said', () => {
  expect(appearsAt('', 'data')).toBe('/home/work/data');
  expect(appearsAt(' sets/ ', 'data')).toBe('/home/work/sets');
  expect(appearsAt('/datasets/one', 'data')).toBe('/datasets/one');
  expect(appearsAt('', '.linuxbrew')).toBe('/home/linuxbrew/.linuxbrew');
});

test('a name means a folder in whatever case, an id exactly one', () => {
  const data = makeFolder('Data', { id: 'a1' });

  expect([means('data', data), means('a1', data), means('a2', data)]).toEqual([
    true,
    true,
    false
  ]);
});

test('a folder of a project is for its sessions, unless it is a model', () => {
  const ours = { ownership_type: 'project', project: 'vision', user: null };

  expect(boundTo(makeFolder('x', ours), 'audio')).toBe('vision');
  expect(boundTo(makeFolder('x', ours), 'vision')).toBe('');
  expect(boundTo(makeFolder('x', { ...ours, usage_mode: 'model' }), 'audio')).toBe('');
  expect(boundTo(makeFolder('x'), 'audio')).toBe('');
});
