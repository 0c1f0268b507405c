/** One thing that is done on a page: under way, told of, or refused. */
import { useQueryClient, type QueryKey } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { useHost } from '../host';
import { useFailure } from '../wording';

/** Do *work*, tell *done*, and have what it changed asked for again. */
type Run = (work: () => Promise<unknown>, done?: string, undo?: () => void) => Promise<boolean>;

export interface Act {
  busy: boolean;
  /** Nothing is done while something is under way: who presses twice means it once. */
  run: Run;
  /** As `run`, from a dialog: nobody hears notices behind it, so `refused` says what failed. */
  send: Run;
  /** Why the last one sent was refused; empty if it was not. */
  refused: string;
  /** Begin anew: nothing has been refused. */
  forget(): void;
}

export function useAct(...changes: QueryKey[]): Act {
  const host = useHost();
  const say = useFailure();
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState('');
  // Known at once; what is drawn is known later.
  const underWay = useRef(false);
  const running =
    (refuse: (reason: string) => void): Run =>
    async (work, done, undo) => {
      if (underWay.current) {
        return false;
      }
      underWay.current = true;
      setBusy(true);
      setRefused('');
      try {
        await work();
        if (done) {
          // What is taken back is not the same thing once more.
          const back = (): void => {
            underWay.current = false;
            undo?.();
          };
          host.notify('success', done, undo && back);
        }
        return true;
      } catch (error) {
        refuse(say(error));
        return false;
      } finally {
        underWay.current = false;
        await Promise.all(changes.map(queryKey => client.invalidateQueries({ queryKey })));
        setBusy(underWay.current);
      }
    };
  return {
    busy,
    run: running(reason => host.notify('error', reason)),
    send: running(setRefused),
    refused,
    forget: () => setRefused('')
  };
}
