/** Where the focus goes when what had it is closed. */
import { useLayoutEffect, useRef, type RefObject } from 'react';

/**
 * Give the focus back to whatever had it before this was opened.
 *
 * What had it may be gone, or the page was opened with this on it: then the page's own
 * heading is where reading goes on.
 */
export function useReturnedFocus<Panel extends HTMLElement>(): RefObject<Panel> {
  const panel = useRef<Panel>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    const own = panel.current;
    return () => {
      if (own?.contains(document.activeElement)) {
        const heading = own.closest('main')?.querySelector('h1') ?? null;
        queueMicrotask(() => giveFocus(before, heading));
      }
    };
  }, []);
  return panel;
}

function giveFocus(before: Element | null, heading: HTMLElement | null): void {
  const fits = before instanceof HTMLElement && before.isConnected && before !== document.body;
  (fits ? before : heading)?.focus();
}
