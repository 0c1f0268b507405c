/** Languages: a catalogue for each area of the pages, loaded when it is needed. */
import i18next, { type i18n } from 'i18next';
import { initReactI18next } from 'react-i18next';
import { patiently } from '../patiently';
import base from './en/base.json';

export const LANGUAGES = {
  en: 'English',
  ko: '한국어',
  ja: '日本語',
  th: 'ไทย'
} as const;

export type Language = keyof typeof LANGUAGES;

/** What is said in one part of the pages alone; `base` is everywhere. */
export type Area = 'launch' | 'nodes' | 'data' | 'work' | 'admin' | 'own';

/* Every area's top-level keys are its own: all of them make one catalogue. */
const NAMESPACE = 'translation';

interface Catalogues {
  /** What the pages shown so far need. */
  areas: Set<Area | 'base'>;
  /** `ko/launch` and the like. */
  loaded: Set<string>;
}

const held = new WeakMap<i18n, Catalogues>();

function catalogues(translator: i18n): Catalogues {
  const known = held.get(translator) ?? {
    areas: new Set(['base'] as const),
    loaded: new Set(['en/base'])
  };
  held.set(translator, known);
  return known;
}

/** The first of *tags* (`ko_KR`, `en-GB`, …) that we speak; English if none. */
export function pickLanguage(tags: readonly (string | null | undefined)[]): Language {
  for (const tag of tags) {
    const code = tag?.toLowerCase().split(/[-_]/)[0];
    if (code && code in LANGUAGES) {
      return code as Language;
    }
  }
  return 'en';
}

/** An own instance: another extension in the page may use i18next as well. */
export async function createTranslator(
  language: Language,
  areas: readonly Area[] = []
): Promise<i18n> {
  const translator = i18next.createInstance();
  await translator.use(initReactI18next).init({
    fallbackLng: 'en',
    resources: { en: { [NAMESPACE]: base } },
    interpolation: { escapeValue: false } // React escapes
  });
  await translator.changeLanguage(language);
  await loadAreas(translator, areas);
  return translator;
}

/** Speak *language* as soon as everything that has been needed so far is loaded. */
export async function changeLanguage(translator: i18n, language: Language): Promise<void> {
  await loadNeeded(translator, language);
  await translator.changeLanguage(language);
}

/** Load what is said in *areas* as well, in this language and in all later ones. */
export async function loadAreas(translator: i18n, areas: readonly Area[]): Promise<void> {
  const { areas: needed } = catalogues(translator);
  areas.forEach(area => needed.add(area));
  await loadNeeded(translator, languageOf(translator));
}

export function hasAreas(translator: i18n, areas: readonly Area[]): boolean {
  const { loaded } = catalogues(translator);
  return areas.every(area => loaded.has(`${languageOf(translator)}/${area}`));
}

function languageOf(translator: i18n): Language {
  return pickLanguage([translator.language]);
}

async function loadNeeded(translator: i18n, language: Language): Promise<void> {
  const { areas, loaded } = catalogues(translator);
  const missing = [...areas].filter(area => !loaded.has(`${language}/${area}`));
  const found = await Promise.all(missing.map(area => loadCatalogue(language, area)));
  missing.forEach((area, index) => {
    translator.addResourceBundle(language, NAMESPACE, found[index], true);
    loaded.add(`${language}/${area}`);
  });
}

async function loadCatalogue(language: Language, area: string): Promise<object> {
  const file = await patiently(
    () => import(`./${language}/${area}.json`) as Promise<{ default: object }>
  );
  return file.default;
}
