/** Asking what would become of a choice, once somebody has stopped changing it. */
import type { DryRun } from '@backendai/api';
import { useEffect, useState } from 'react';
import type { LaunchSpec } from './form';

/** Asks the service; null where it cannot tell. */
export type AskFirst = (spec: LaunchSpec, signal: AbortSignal) => Promise<DryRun | null>;

export const PAUSE = 400;

/** Return what would become of `spec`, or null while nobody knows. */
export function useDryRun(spec: LaunchSpec | null, ask: AskFirst | undefined): DryRun | null {
  const wanted = spec && ask ? JSON.stringify(spec) : '';
  const [known, setKnown] = useState<{ of: string; outcome: DryRun } | null>(null);
  useEffect(() => {
    if (!wanted || !ask) {
      return undefined;
    }
    const gone = new AbortController();
    const timer = setTimeout(() => {
      ask(JSON.parse(wanted) as LaunchSpec, gone.signal).then(
        outcome => {
          if (outcome && !gone.signal.aborted) {
            setKnown({ of: wanted, outcome });
          }
        },
        () => undefined // the page judges by itself then
      );
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [wanted, ask]);
  return known?.of === wanted ? known.outcome : null;
}
