import { describe, expect, test } from 'vitest';
import { explorerAt, faultOf, isWithin, join, nameOf, parentOf, waysTo } from './paths';

describe('a path', () => {
  test('is put together without empty parts', () => {
    expect(join('', 'a', '', 'b.txt')).toBe('a/b.txt');
  });

  test('has a name and a folder that it lies in', () => {
    expect([nameOf('a/b/c.txt'), parentOf('a/b/c.txt')]).toEqual(['c.txt', 'a/b']);
    expect([nameOf('c.txt'), parentOf('c.txt')]).toEqual(['c.txt', '']);
  });

  test('leads through every folder above it', () => {
    expect(waysTo('a/b/c')).toEqual([
      { name: 'a', path: 'a' },
      { name: 'b', path: 'a/b' },
      { name: 'c', path: 'a/b/c' }
    ]);
    expect(waysTo('')).toEqual([]);
  });

  test('lies in a folder only where a whole part of it says so', () => {
    expect(isWithin('runs/7', 'runs')).toBe(true);
    expect(isWithin('runs', 'runs')).toBe(true);
    expect(isWithin('runs-old/7', 'runs')).toBe(false);
    expect(isWithin('anything', '')).toBe(true);
  });

  test('is carried by the address of the explorer, whatever it contains', () => {
    const address = explorerAt('id', 'a & b/ü?', '<img onerror=x>.png');

    expect(address.startsWith('/data/id?')).toBe(true);
    const query = new URLSearchParams(address.split('?')[1]);
    expect([query.get('path'), query.get('show')]).toEqual(['a & b/ü?', '<img onerror=x>.png']);
    expect(explorerAt('id')).toBe('/data/id');
  });
});

test.each([
  ['', 'empty'],
  ['..', 'dots'],
  ['a/b', 'slash'],
  ['\u{1f600}'.repeat(64), 'long'],
  ['a\nb', 'control'],
  ['<img src=x onerror=alert(1)>', null],
  ['.hidden', null]
])('the name %j has the fault %j', (name, fault) => {
  expect(faultOf(name)).toBe(fault);
});
