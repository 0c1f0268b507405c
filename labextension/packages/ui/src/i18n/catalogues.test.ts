import { describe, expect, test } from 'vitest';
import { canOpen, STATUSES } from '../sessions/status';
import { changeLanguage, createTranslator, hasAreas, loadAreas, pickLanguage } from './index';

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

/** Every area of one language, as one catalogue. */
function gather(language: string): Catalogue {
  const files = import.meta.glob<{ default: Catalogue }>('./*/*.json', { eager: true });
  const mine = Object.entries(files).filter(([name]) => name.startsWith(`./${language}/`));
  const tops = mine.flatMap(([, file]) => Object.keys(file.default));
  // Areas are merged into one: what two of them say, one of them would not.
  expect(tops).toEqual([...new Set(tops)]);
  return Object.assign({}, ...mine.map(([, file]) => file.default)) as Catalogue;
}

const placeholders = (text: string): string[] =>
  [...text.matchAll(/{{(\w+)}}/g)].map(m => m[0]).sort();
const english = flatten(gather('en'));

describe('the states of sessions', () => {
  test('all have a word and a hint', () => {
    const keys = STATUSES.flatMap(status => [`status.${status}`, `statusHint.${status}`]);

    expect(keys.filter(key => english[key] === undefined)).toEqual([]);
  });

  test('in which people reach them are those in which something answers', () => {
    expect(STATUSES.filter(canOpen)).toEqual(['RUNNING', 'PREEMPTED']);
  });
});

describe.each(['ko', 'ja', 'th'])('the catalogue of %s', language => {
  const translated = flatten(gather(language));

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

    // The product's name is the same everywhere.
    expect(same).toEqual(['app.name', 'lab.category']);
  });
});

test('the first language that we speak is chosen', () => {
  expect(pickLanguage([null, 'fr-FR', 'ko_KR', 'en'])).toBe('ko');
  expect(pickLanguage(['th-TH'])).toBe('th');
  expect(pickLanguage(['fr', undefined])).toBe('en');
});

test('an area is loaded once it is needed, in each language spoken from then on', async () => {
  const translator = await createTranslator('ko');
  expect(hasAreas(translator, ['nodes'])).toBe(false);

  await loadAreas(translator, ['nodes']);
  await changeLanguage(translator, 'th');

  expect(hasAreas(translator, ['nodes'])).toBe(true);
  expect(translator.exists('nodes.title', { fallbackLng: [] })).toBe(true);
});
