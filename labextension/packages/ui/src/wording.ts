/** What the service says in sentences, with the names and times of whoever reads them. */
import type { TFunction } from 'i18next';
import { useCallback } from 'react';
import { useTranslation } from 'react-i18next';
import type { Book, Piece } from './phrases/book';
import { loadBook, useBook } from './phrases/load';
import { slotTitle } from './slots';
import { toTheMinute } from './times';

/* Names of slots as requests write them: `cpu`, `cuda.shares`, `cuda.device:1g.10gb-mig`. */
const SLOT =
  /(?<![\w.:/-])(?:cpu|mem|[a-z][a-z0-9-]*\.(?:device|shares)(?::[a-z0-9.-]*[a-z0-9])?)(?![\w/-])/g;

/* Moments as the service writes them: `2026-01-02 03:04 UTC`, or as in its answers. */
const MOMENT = /(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?: UTC|Z)/g;

/** `cuda.device: asks 6, 1 free` reads `NVIDIA GPU: asks 6, 1 free`. */
export function wordSentence(text: string, t: TFunction, language: string): string {
  return text
    .replace(SLOT, (slot, at: number) => {
      const title = slotTitle(slot, t);
      // A name in the middle of a sentence, unless it is an abbreviation.
      const plain = /^\p{Lu}\p{Ll}/u.test(title) && !slot.includes('.');
      return at > 0 && plain ? title.charAt(0).toLowerCase() + title.slice(1) : title;
    })
    .replace(MOMENT, (written, day: string, time: string) => {
      const moment = `${day}T${time}Z`;
      // Somebody may have written a day that is none.
      return Number.isNaN(Date.parse(moment)) ? written : toTheMinute(moment, language);
    });
}

/** Whether something is left of it in the service's own words: all but names and times. */
export function isSentence(text: string): boolean {
  return /\p{L}/u.test(text.replace(SLOT, '').replace(MOMENT, ''));
}

/* Lengths of time as the service writes them: `1 h 30 min`. */
const DURATION = /^\d+ (?:d|h|min|s)(?: \d+ (?:h|min|s))*$/;
const UNITS = { d: 'day', h: 'hour', min: 'minute', s: 'second' } as const;

function wordDuration(text: string, language: string): string {
  return text.replace(/(\d+) (d|h|min|s)/g, (_, count: string, unit: keyof typeof UNITS) =>
    new Intl.NumberFormat(language, {
      style: 'unit',
      unit: UNITS[unit],
      unitDisplay: 'long'
    }).format(Number(count))
  );
}

/* A state, or the name of a session with its state: `train (ERROR)`. */
const STATUS = /^(?:[\w.-]+ \([A-Z]+\)|[A-Z]+)$/;

/** A value of a sentence as the pages write it, or null if it is the service's word. */
function wordValue(text: string, t: TFunction, language: string): string | null {
  if (STATUS.test(text)) {
    return text.replace(/[A-Z]+(?=\)?$)/, status =>
      t(`status.${status}`, { defaultValue: status })
    );
  }
  if (DURATION.test(text)) {
    return wordDuration(text, language);
  }
  return isSentence(text) ? null : text;
}

/** Says a sentence by *book*, part by part; without one it stays English. */
export function sayParts(
  text: string,
  book: Book | null,
  t: TFunction,
  language: string
): Piece[] {
  const pieces = book?.say(text, each => wordValue(each, t, language)) ?? [
    { text, english: isSentence(text) }
  ];
  return pieces.map(piece => ({ ...piece, text: wordSentence(piece.text, t, language) }));
}

/** Says what the service says in the reader's language, part by part. */
export function useSaying(): (text: string) => Piece[] {
  const { t, i18n } = useTranslation();
  const { language } = i18n;
  const book = useBook(language);
  return useCallback(
    text => {
      if (!book && isSentence(text)) {
        void loadBook(language);
      }
      return sayParts(text, book, t, language);
    },
    [book, t, language]
  );
}

/** Says a sentence of the service where only text can stand. */
export function useWording(): (text: string) => string {
  const say = useSaying();
  return useCallback(
    text =>
      say(text)
        .map(piece => piece.text)
        .join(''),
    [say]
  );
}

/** Says what an attempt failed with: a refusal of the service, or a mistake. */
export function useFailure(): (reason: unknown) => string {
  const say = useWording();
  return useCallback(
    reason => say(reason instanceof Error ? reason.message : String(reason)),
    [say]
  );
}
