import { expect, test } from 'vitest';
import { whenWanted } from './wanted';

test('what is wanted several times is loaded once', () => {
  let loads = 0;
  const want = whenWanted(
    () => Promise.resolve(void ++loads),
    () => undefined
  );

  expect(loads).toBe(0);
  want();
  want();

  expect(loads).toBe(1);
});

test('what could not be loaded is told, and loaded when it is asked for again', async () => {
  let loads = 0;
  const again = await new Promise<() => void>(told => {
    whenWanted(
      () => (++loads === 1 ? Promise.reject(new Error('lost')) : Promise.resolve()),
      told
    )();
  });

  again();
  again();

  expect(loads).toBe(2);
});
