/** Languages: one catalogue each, loaded when it is needed. */
import i18next, { type i18n } from 'i18next';
import { initReactI18next } from 'react-i18next';
import en from './en.json';

export const LANGUAGES = {
  en: 'English',
  ko: '한국어',
  ja: '日本語',
  th: 'ไทย'
} as const;

export type Language = keyof typeof LANGUAGES;

const CATALOGUES: Record<Exclude<Language, 'en'>, () => Promise<{ default: object }>> = {
  ko: () => import('./ko.json'),
  ja: () => import('./ja.json'),
  th: () => import('./th.json')
};

/** The first of *wanted* (`ko_KR`, `en-GB`, …) that we speak; English if none. */
export function pickLanguage(wanted: readonly (string | null | undefined)[]): Language {
  for (const tag of wanted) {
    const code = tag?.toLowerCase().split(/[-_]/)[0];
    if (code && code in LANGUAGES) {
      return code as Language;
    }
  }
  return 'en';
}

/** An own instance: another extension in the page may use i18next as well. */
export async function createTranslator(language: Language): Promise<i18n> {
  const translator = i18next.createInstance();
  await translator.use(initReactI18next).init({
    fallbackLng: 'en',
    resources: { en: { translation: en } },
    interpolation: { escapeValue: false } // React escapes
  });
  await changeLanguage(translator, language);
  return translator;
}

export async function changeLanguage(translator: i18n, language: Language): Promise<void> {
  if (language !== 'en' && !translator.hasResourceBundle(language, 'translation')) {
    const catalogue = await CATALOGUES[language]();
    translator.addResourceBundle(language, 'translation', catalogue.default);
  }
  await translator.changeLanguage(language);
}
