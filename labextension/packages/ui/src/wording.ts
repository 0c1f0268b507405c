/** What the service says in sentences, with the names and times of whoever reads them. */
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import { useHost } from './host';
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
    .replace(MOMENT, (_, day: string, time: string) =>
      toTheMinute(`${day}T${time}Z`, language)
    );
}

/** Whether something is left of it in the service's own words: all but names and times. */
export function isSentence(text: string): boolean {
  return /\p{L}/u.test(text.replace(SLOT, '').replace(MOMENT, ''));
}

/** Says a sentence of the service in the words that the pages use. */
export function useWording(): (text: string) => string {
  const { t } = useTranslation();
  const { language } = useHost();
  return text => wordSentence(text, t, language);
}
