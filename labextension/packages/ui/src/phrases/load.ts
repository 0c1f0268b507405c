/** The phrase books of the languages, each loaded when something is said in it. */
import { useEffect, useSyncExternalStore } from 'react';
import { pickLanguage } from '../i18n';
import type { Book } from './book';

type Phrases = Record<string, string>;

const SOURCES: Record<string, () => Promise<{ default: Phrases }>> = {
  ko: () => import('../i18n/phrases/ko.json'),
  ja: () => import('../i18n/phrases/ja.json'),
  th: () => import('../i18n/phrases/th.json')
};

const books = new Map<string, Book>();
const loading = new Map<string, Promise<void>>();
const readers = new Set<() => void>();

function subscribe(reader: () => void): () => void {
  readers.add(reader);
  return () => readers.delete(reader);
}

/** Have the book of *language*; English needs none, and a failure is tried again later. */
export function loadBook(tag: string): Promise<void> {
  const language = pickLanguage([tag]);
  const source = SOURCES[language];
  if (!source || books.has(language)) {
    return Promise.resolve();
  }
  const begun =
    loading.get(language) ??
    Promise.all([import('./book'), source()])
      .then(([{ Book: Bound }, found]) => {
        books.set(language, new Bound(found.default));
        readers.forEach(tell => tell());
      })
      .catch(() => undefined) // what is said stays English
      .finally(() => loading.delete(language));
  loading.set(language, begun);
  return begun;
}

/** The book of *language*, or null where there is none, or not yet. */
export function useBook(tag: string): Book | null {
  const language = pickLanguage([tag]);
  useEffect(() => void loadBook(language), [language]);
  return useSyncExternalStore(subscribe, () => books.get(language) ?? null);
}
