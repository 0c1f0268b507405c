/** The phrase books of the languages, each loaded when something is said in it. */
import { useEffect, useSyncExternalStore } from 'react';
import { pickLanguage } from '../i18n';
import { patiently } from '../patiently';
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
  const coming =
    loading.get(language) ??
    patiently(() => Promise.all([import('./book'), source()]))
      .then(([{ Book: Bound }, found]) => {
        books.set(language, new Bound(found.default));
        readers.forEach(tell => tell());
      })
      .catch(() => undefined) // what is said stays English
      .finally(() => loading.delete(language));
  loading.set(language, coming);
  return coming;
}

const DEEDS = ['pointermove', 'pointerdown', 'keydown'] as const;

let begun: Promise<void> | undefined;

/** When somebody first does anything with the page: before, nothing can be refused. */
function firstDeed(): Promise<void> {
  begun ??= new Promise(resolve => {
    const heard = new AbortController();
    const hear = (): void => {
      heard.abort();
      resolve();
    };
    DEEDS.forEach(deed => window.addEventListener(deed, hear, { signal: heard.signal }));
  });
  return begun;
}

/**
 * The book of *language*, or null where there is none, or not yet.
 *
 * Books are large, and pages that say nothing of the service do not wait for one. What a
 * deed fails with is said at once, though: with the first one the book is on its way.
 */
export function useBook(tag: string): Book | null {
  const language = pickLanguage([tag]);
  useEffect(() => void firstDeed().then(() => loadBook(language)), [language]);
  return useSyncExternalStore(subscribe, () => books.get(language) ?? null);
}
