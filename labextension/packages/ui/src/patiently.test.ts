import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { patiently } from './patiently';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const lost = (): Error => new TypeError('Failed to fetch dynamically imported module');

test('what comes is asked for once', async () => {
  const load = vi.fn(() => Promise.resolve('here'));

  expect(await patiently(load)).toBe('here');

  expect(load).toHaveBeenCalledOnce();
});

test('what does not come because the network changes is asked for again', async () => {
  const load = vi.fn(() => Promise.resolve('here'));
  load.mockRejectedValueOnce(lost()).mockRejectedValueOnce(lost());

  const coming = patiently(load);
  await vi.runAllTimersAsync();

  expect(await coming).toBe('here');
});

test('what never comes fails within a few seconds, and says why', async () => {
  const load = vi.fn(() => Promise.reject(lost()));

  const coming = patiently(load);
  const failed = expect(coming).rejects.toThrow('Failed to fetch');
  await vi.advanceTimersByTimeAsync(3000);

  await failed;
  expect(load).toHaveBeenCalledTimes(4);
});
