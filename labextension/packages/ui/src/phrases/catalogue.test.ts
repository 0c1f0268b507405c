import { describe, expect, test } from 'vitest';
import english from '../i18n/phrases/en.json';
import ja from '../i18n/phrases/ja.json';
import ko from '../i18n/phrases/ko.json';
import th from '../i18n/phrases/th.json';
import { Book } from './book';

const TEMPLATES = Object.values(english).flat();
const placesOf = (text: string): string[] =>
  [...text.matchAll(/\{\w*\}/g)].map(m => m[0]).sort();
/** A sentence that *template* makes, of short names; there is no hint. */
const sample = (template: string): string =>
  template.replace(/\{(\w*)\}/g, (_, name: string) => (name === 'hint' ? '' : `x${name}`));

describe.each([
  ['ko', ko],
  ['ja', ja],
  ['th', th]
])('the phrase book of %s', (_, phrases: Record<string, string>) => {
  test('says what the service says, and nothing else', () => {
    expect(Object.keys(phrases).filter(each => !TEMPLATES.includes(each))).toEqual([]);
    expect(TEMPLATES.filter(each => !phrases[each])).toEqual([]);
  });

  test('has the same places', () => {
    for (const [template, said] of Object.entries(phrases)) {
      expect(placesOf(said), template).toEqual(placesOf(template));
    }
  });

  test('is translated, but for names of fields', () => {
    const same = Object.entries(phrases).filter(
      ([template, said]) => template === said && !/^\w+: \{\w+\}$/.test(template)
    );
    expect(same).toEqual([]);
  });
});

describe('templates are told apart', () => {
  const book = new Book(Object.fromEntries(TEMPLATES.map(each => [each, each])));

  test('each says what it has made', () => {
    const confused = TEMPLATES.filter(each => placesOf(each).length > 0).filter(each => {
      const found = book.find(sample(each), false)?.template.english;
      return found !== each;
    });
    // The other one may end in a hint, and says the same.
    expect(confused).toEqual(['{name} is not a parameter here; use {names}']);
  });

  test('what is said with others is still said by them', () => {
    const said = book.say(`${sample('stopped by {name}')}; it is in use`, () => null);
    expect(said).toEqual([{ text: 'stopped by xname; it is in use', english: false }]);
  });
});
