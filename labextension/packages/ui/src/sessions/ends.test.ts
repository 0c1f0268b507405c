import { expect, test } from 'vitest';
import english from '../i18n/phrases/en.json';
import { ASKED_FOR } from './ends';

test('what people have asked for is known by the words that the service has for it', () => {
  expect(Object.values(english).flat()).toEqual(expect.arrayContaining(ASKED_FOR));
});
