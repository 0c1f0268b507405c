/** What nouns, fields and values are called, in the reader's language. */
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import type { AnyNoun, NounName } from './noun';

export interface NounWords {
  t: TFunction;
  /** `nouns.users.title` and so on. */
  say(key: string, values?: Record<string, unknown>): string;
  label(field: string): string;
  help(field: string): string | undefined;
}

export function nounWords(t: TFunction, noun: NounName): NounWords {
  const own = (kind: string, field: string): string[] => [
    `${kind}.${noun}.${field}`,
    `${kind}.any.${field}`
  ];
  return {
    t,
    say: (key, values) => t(`nouns.${noun}.${key}`, { ...values }),
    label: field => t(own('fields', field), { defaultValue: field }),
    help: field => t(own('help', field), { defaultValue: '' }) || undefined
  };
}

export function useNounWords(noun: AnyNoun): NounWords {
  const { t } = useTranslation();
  return nounWords(t, noun.name);
}

/** One of the words of the API; what nobody has translated is said as it is. */
export function valueWord(t: TFunction, field: string, value: string): string {
  const last = field.split('.').at(-1) ?? field;
  return t(`values.${last}.${value}`, { defaultValue: value });
}
