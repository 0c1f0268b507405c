/** Changes that are not saved yet: nobody leaves them by accident. */
import { useEffect } from 'react';
import { useRouter, type RouterObject } from 'wouter';
import { useBrowserLocation } from 'wouter/use-browser-location';

/** Asks whether to leave, and calls `leave` if so. */
type Ask = (leave: () => void) => void;

/** One for each address there is: a browser's tab, or one of JupyterLab's. */
type Hook = RouterObject['hook'];

const asking = new Map<Ask, Hook>();

/** Go on with *leave*, unless something that stands at that address wants to ask first. */
export function leaveThen(leave: () => void, hook?: Hook): void {
  const found = [...asking].find(([, each]) => hook === undefined || each === hook);
  if (found) {
    found[0](leave);
  } else {
    leave();
  }
}

interface Numbered {
  place?: number;
}

/** Where in the browser's history a page stands, counted since the console was loaded. */
const place = (): number => (window.history.state as Numbered | null)?.place ?? 0;

/** What is kept with a new page of the history, so that the way back from it is known. */
export const numbered = (replace = false): Numbered => ({ place: place() + (replace ? 0 : 1) });

/** While *dirty*, have *ask* asked before the page is left, in whichever way. */
export function useLeaving(dirty: boolean, ask: Ask): void {
  const { hook } = useRouter();
  useEffect(() => {
    if (!dirty) {
      return undefined;
    }
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    // Who stands elsewhere, as in a tab of JupyterLab's, is not moved by those buttons.
    const end = hook === useBrowserLocation ? holdBack(ask) : () => undefined;
    asking.set(ask, hook);
    window.addEventListener('beforeunload', warn);
    return () => {
      end();
      asking.delete(ask);
      window.removeEventListener('beforeunload', warn);
    };
  }, [dirty, ask, hook]);
}

/** Those that hold somebody back who leaves by the browser's own buttons. */
const holding = new Set<(event: PopStateEvent) => void>();

// Windows tell those first who have asked first: this is before the router asks.
window.addEventListener('popstate', event => {
  const [hold] = holding;
  hold?.(event);
});

/**
 * Ask when the browser's own buttons lead away. What they do cannot be refused, so it is
 * undone before anything else hears of it, and done once more for who wants to leave.
 */
function holdBack(ask: Ask): () => void {
  const here = place();
  const { pathname, search } = window.location;
  const isHere = (): boolean =>
    window.location.pathname === pathname && window.location.search === search;
  let steps: number | null = null;
  let leaves = false;
  const move = (event: PopStateEvent): void => {
    if (leaves) {
      return;
    }
    if (isHere()) {
      if (steps !== null) {
        const again = steps;
        steps = null;
        event.stopImmediatePropagation();
        ask(() => {
          leaves = true;
          window.history.go(again);
        });
      }
      return;
    }
    event.stopImmediatePropagation();
    steps = place() - here || -1;
    window.history.go(-steps);
  };
  holding.add(move);
  return () => void holding.delete(move);
}
