/** What the pages and the widgets of notebooks say alike, by one table of examples. */
import i18next from 'i18next';
import { expect, test } from 'vitest';
import jaBase from '../i18n/ja/base.json';
import koBase from '../i18n/ko/base.json';
import ja from '../i18n/phrases/ja.json';
import ko from '../i18n/phrases/ko.json';
import th from '../i18n/phrases/th.json';
import thBase from '../i18n/th/base.json';
import { sayParts } from '../wording';
import { Book } from './book';
import examples from './examples.json';

test.each([
  ['ko', koBase, ko],
  ['ja', jaBase, ja],
  ['th', thBase, th]
] as const)('the service is quoted in %s', async (language, base, phrases) => {
  const words = i18next.createInstance();
  await words.init({ lng: language, resources: { [language]: { translation: base } } });
  const book = new Book(phrases);
  for (const [text, said] of Object.entries(examples)) {
    const parts = sayParts(text, book, words.t, language);
    expect(parts.map(part => part.text).join('')).toBe(said[language]);
  }
});
