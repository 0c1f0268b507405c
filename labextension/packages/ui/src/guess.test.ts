import { QueryClient } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { guess } from './guess';

interface Page {
  names: string[];
}

const KEY = ['pages'];
const rename = (page: Page): Page => ({ names: page.names.map(name => `${name}!`) });

function cache() {
  const client = new QueryClient();
  client.setQueryData([...KEY, 1], { names: ['a'] });
  client.setQueryData([...KEY, 2], { names: ['b'] });
  client.setQueryData(['others'], { names: ['c'] });
  const names = (...key: unknown[]): string[] | undefined =>
    client.getQueryData<Page>(key)?.names;
  return { client, names };
}

test('every answer shows what is certain to be, and no other', async () => {
  const { client, names } = cache();

  await guess(client, { queryKey: KEY }, rename);

  expect([names('pages', 1), names('pages', 2), names('others')]).toEqual([
    ['a!'],
    ['b!'],
    ['c']
  ]);
});

test('what was refused is as it was', async () => {
  const { client, names } = cache();
  const takeBack = await guess(client, { queryKey: KEY }, rename);

  takeBack();

  expect([names('pages', 1), names('pages', 2)]).toEqual([['a'], ['b']]);
});

test('what was heard meanwhile is not taken back', async () => {
  const { client, names } = cache();
  const takeBack = await guess(client, { queryKey: KEY }, rename);
  client.setQueryData([...KEY, 1], { names: ['told'] });

  takeBack();

  expect([names('pages', 1), names('pages', 2)]).toEqual([['told'], ['b']]);
});

test('an answer of before that comes late does not count', async () => {
  const { client, names } = cache();
  let answer: (page: Page) => void = () => undefined;
  const asked = client
    .fetchQuery({ queryKey: [...KEY, 1], queryFn: () => new Promise<Page>(r => (answer = r)) })
    .catch(() => undefined);

  await guess(client, { queryKey: KEY }, rename);
  answer({ names: ['a'] });
  await asked;

  expect(names('pages', 1)).toEqual(['a!']);
});
