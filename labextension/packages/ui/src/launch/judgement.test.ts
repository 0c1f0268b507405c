import { describe, expect, test } from 'vitest';
import { makeResources } from '../testing';
import { judge } from './judgement';

const GIB = 2 ** 30;
const resources = makeResources();

describe('what is asked for', () => {
  test('starts now when one node has room for every part', () => {
    expect(judge({ cpu: 4, mem: 16 * GIB, 'cuda.device': 1 }, resources)).toEqual({
      verdict: 'now'
    });
  });

  test('waits when less is free', () => {
    expect(judge({ cpu: 7 }, resources)).toEqual({
      verdict: 'wait',
      shortages: [{ slot: 'cpu', asked: 7, have: 6 }]
    });
  });

  test('waits when enough is free, but nowhere on one node', () => {
    expect(judge({ cpu: 5 }, resources)).toEqual({
      verdict: 'wait',
      shortages: [{ slot: 'cpu', asked: 5, have: 4, scattered: true }]
    });
  });

  test('waits for as much as the biggest node has', () => {
    expect(judge({ cpu: 8, mem: 48 * GIB }, resources).verdict).toBe('wait');
  });

  test('never starts when the biggest node is too small, whatever all have together', () => {
    expect(judge({ cpu: 5, mem: 49 * GIB }, resources)).toEqual({
      verdict: 'never',
      shortages: [{ slot: 'mem', asked: 49 * GIB, have: 48 * GIB }]
    });
  });

  test('never starts when it needs what no node has', () => {
    expect(judge({ 'rocm.device': 1 }, resources).verdict).toBe('never');
  });

  test('does not need what it asks nothing of', () => {
    expect(judge({ 'rocm.device': 0, cpu: 1 }, resources).verdict).toBe('now');
  });

  test('waits for a limit that others use up, and never passes one it exceeds alone', () => {
    const limit = { scope: 'project', name: 'vision', slot: 'cpu', used: '3', cap: '4' };
    const limited = makeResources({ limits: [limit] });
    const by = { scope: 'project', name: 'vision' };

    expect(judge({ cpu: 1 }, limited).verdict).toBe('now');
    expect(judge({ cpu: 2 }, limited)).toEqual({
      verdict: 'wait',
      shortages: [{ slot: 'cpu', asked: 2, have: 1, limit: by }]
    });
    expect(judge({ cpu: 5 }, limited)).toEqual({
      verdict: 'never',
      shortages: [{ slot: 'cpu', asked: 5, have: 4, limit: by }]
    });
  });

  test('is one more session, wherever those are limited', () => {
    const limit = { scope: 'user', name: 'mina', slot: 'sessions', used: '2', cap: '3' };
    const judged = (changes: { used?: string; cap?: string }) =>
      judge({ cpu: 1 }, makeResources({ limits: [{ ...limit, ...changes }] }));
    const by = { scope: 'user', name: 'mina' };

    expect(judged({})).toEqual({ verdict: 'now' });
    expect(judged({ used: '3' })).toEqual({
      verdict: 'wait',
      shortages: [{ slot: 'sessions', asked: 1, have: 0, limit: by }]
    });
    expect(judged({ used: '0', cap: '0' })).toEqual({
      verdict: 'never',
      shortages: [{ slot: 'sessions', asked: 1, have: 0, limit: by }]
    });
  });

  test('has an unknown fate while no node is connected', () => {
    const empty = makeResources({ nodes: 0, room: [] });

    expect(judge({ cpu: 1 }, empty)).toEqual({ verdict: 'unknown' });
  });
});
