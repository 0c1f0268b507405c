import i18next from 'i18next';
import { beforeAll, expect, test } from 'vitest';
import base from './i18n/en/base.json';
import { wordSentence } from './wording';

const words = i18next.createInstance();
const say = (text: string): string => wordSentence(text, words.t, 'en');

beforeAll(() => words.init({ lng: 'en', resources: { en: { translation: base } } }));

test.each([
  ['cuda.device: asks 6, 1 free on gpu-01', 'NVIDIA GPU: asks 6, 1 free on gpu-01'],
  ['with 1 cuda.device instead of 6', 'with 1 NVIDIA GPU instead of 6'],
  ['user: mem 7 GiB of 16 GiB', 'user: memory 7 GiB of 16 GiB'],
  ['mem: asks 9 GiB; cpu: asks 48', 'Memory: asks 9 GiB; CPU: asks 48'],
  ['has 2 cuda.device:1g.10gb-mig free', 'has 2 NVIDIA 1g.10gb GPU free'],
  ['with 0.5 cuda.shares.', 'with 0.5 NVIDIA GPU share.']
])('a sentence of the service names resources as the pages do: %s', (told, shown) => {
  expect(say(told)).toBe(shown);
});

test.each(['waits for mem-check (RUNNING) to succeed', 'node cpu-01 left', '/data/mem/cpu'])(
  'names that only look like resources stay as they are: %s',
  told => {
    expect(say(told)).toBe(told);
  }
);

test.each(['2099-01-01 12:00 UTC', '2099-01-01T12:00:00.000Z'])(
  'a moment is written as its reader writes it: %s',
  moment => {
    const shown = say(`is to start at ${moment} at the earliest`);
    expect(shown).toMatch(/^is to start at Jan 1, 2099, \d+:00 [AP]M at the earliest$/);
  }
);

test('a day that is none stays as somebody has written it', () => {
  const told = 'train-2026-13-45 10:00 UTC failed';
  expect(say(told)).toBe(told);
});
