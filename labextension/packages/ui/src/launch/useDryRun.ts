/** Asking what would become of a choice, once somebody has stopped changing it. */
import type { DryRun } from '@backendai/api';
import { useEffect, useState } from 'react';
import type { LaunchSpec } from './form';

/** Asks the service; null where it cannot tell. */
export type AskFirst = (spec: LaunchSpec, signal: AbortSignal) => Promise<DryRun | null>;

export const PAUSE = 400;
/** What was said may have become wrong: it is asked again while somebody looks. */
export const AGAIN = 15_000;

/** Return what would become of `spec`, or null while nobody knows. */
export function useDryRun(spec: LaunchSpec | null, ask: AskFirst | undefined): DryRun | null {
  const wanted = spec && ask ? JSON.stringify(spec) : '';
  const [known, setKnown] = useState<{ of: string; outcome: DryRun } | null>(null);
  useEffect(() => {
    if (!wanted || !ask) {
      return undefined;
    }
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const askNow = (): void => {
      clearTimeout(timer);
      if (document.visibilityState === 'hidden') {
        return; // asked when somebody looks again
      }
      ask(JSON.parse(wanted) as LaunchSpec, gone.signal)
        // Without an answer the page judges by itself.
        .catch(() => null)
        .then(outcome => {
          if (!gone.signal.aborted) {
            setKnown(outcome && { of: wanted, outcome });
            timer = setTimeout(askNow, AGAIN);
          }
        });
    };
    timer = setTimeout(askNow, PAUSE);
    document.addEventListener('visibilitychange', askNow);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', askNow);
      gone.abort();
    };
  }, [wanted, ask]);
  return known?.of === wanted ? known.outcome : null;
}
