import { describe, expect, test } from 'vitest';
import en from './en.json';
import ja from './ja.json';
import ko from './ko.json';
import th from './th.json';
import { canOpen, STATUSES } from '../sessions/status';
import { pickLanguage } from './index';

interface Catalogue {
  [key: string]: string | Catalogue;
}

function flatten(catalogue: Catalogue, path = ''): Record<string, string> {
  return Object.fromEntries(
    Object.entries(catalogue).flatMap(([key, value]) =>
      typeof value === 'string'
        ? [[path + key, value]]
        : Object.entries(flatten(value, `${path}${key}.`))
    )
  );
}

const placeholders = (text: string): string[] =>
  [...text.matchAll(/{{(\w+)}}/g)].map(m => m[0]).sort();
const english = flatten(en);

describe('the states of sessions', () => {
  test('all have a word and a hint', () => {
    const keys = STATUSES.flatMap(status => [`status.${status}`, `statusHint.${status}`]);

    expect(keys.filter(key => english[key] === undefined)).toEqual([]);
  });

  test('in which people reach them are those in which something answers', () => {
    expect(STATUSES.filter(canOpen)).toEqual(['RUNNING', 'PREEMPTED']);
  });
});

describe.each(Object.entries({ ko, ja, th }))('the catalogue of %s', (_, catalogue) => {
  const translated = flatten(catalogue);

  test('says exactly what the English one says', () => {
    expect(Object.keys(translated).sort()).toEqual(Object.keys(english).sort());
  });

  test('has the same placeholders', () => {
    for (const [key, text] of Object.entries(english)) {
      expect(placeholders(translated[key] ?? ''), key).toEqual(placeholders(text));
    }
  });

  test('leaves nothing empty that English says', () => {
    const forgotten = Object.keys(english).filter(key => english[key] && !translated[key]);

    expect(forgotten).toEqual([]);
  });

  test('is translated, but for names and abbreviations', () => {
    const same = Object.keys(english).filter(
      key =>
        english[key] === translated[key] &&
        /[a-z]{4}/.test((english[key] ?? '').replace(/{{\w+}}/g, ''))
    );

    expect(same).toEqual(['app.name']);
  });
});

test('the first language that we speak is chosen', () => {
  expect(pickLanguage([null, 'fr-FR', 'ko_KR', 'en'])).toBe('ko');
  expect(pickLanguage(['th-TH'])).toBe('th');
  expect(pickLanguage(['fr', undefined])).toBe('en');
});
