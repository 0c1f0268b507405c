// @vitest-environment happy-dom
import type { DryRun } from '@backendai/api';
import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { LaunchSpec } from './form';
import { AGAIN, PAUSE, useDryRun } from './useDryRun';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const SPEC = { name: 'train' } as LaunchSpec;

function listen(...answers: (boolean | null)[]) {
  const ask = vi.fn(() => {
    const now = answers.shift();
    return now === null
      ? Promise.reject(new Error('it is away'))
      : Promise.resolve({ starts_now: now } as DryRun);
  });
  const { result } = renderHook(() => useDryRun(SPEC, ask));
  const pass = (milliseconds: number): Promise<unknown> =>
    act(() => vi.advanceTimersByTimeAsync(milliseconds));
  return { ask, pass, verdict: () => result.current?.starts_now };
}

function look(state: 'hidden' | 'visible'): void {
  vi.spyOn(document, 'visibilityState', 'get').mockReturnValue(state);
  document.dispatchEvent(new Event('visibilitychange'));
}

test('what was said is asked again, since others take and give room', async () => {
  const { pass, verdict } = listen(true, false);
  await pass(PAUSE);
  expect(verdict()).toBe(true);

  await pass(AGAIN);

  expect(verdict()).toBe(false);
});

test('what nobody can confirm any more is not said any more', async () => {
  const { pass, verdict } = listen(true, null, true);
  await pass(PAUSE);

  await pass(AGAIN);
  expect(verdict()).toBeUndefined();

  await pass(AGAIN);
  expect(verdict()).toBe(true);
});

test('nothing is asked while nobody looks, and at once when somebody does', async () => {
  const { ask, pass, verdict } = listen(true, false);
  await pass(PAUSE);
  look('hidden');
  await pass(10 * AGAIN);
  expect(ask).toHaveBeenCalledTimes(1);

  look('visible');
  await pass(0);

  expect(ask).toHaveBeenCalledTimes(2);
  expect(verdict()).toBe(false);
});
