/** Where the focus goes when what had it is no longer on the page. */
import { useEffect } from 'react';

/**
 * Keep the keyboard where one was, as nearly as can be.
 *
 * A button that has done its work may vanish with the focus on it: browsers then begin
 * at the top of the document. The page's heading is nearer.
 */
export function useKeptFocus(): void {
  useEffect(() => {
    let last: EventTarget | null = null;
    const remember = (event: FocusEvent): void => {
      last = event.target;
    };
    const rescue = (): void => {
      const lost = last instanceof HTMLElement && !last.isConnected;
      if (lost && document.activeElement === document.body) {
        last = null;
        document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
      }
    };
    const observer = new MutationObserver(rescue);
    document.addEventListener('focusin', remember);
    observer.observe(document.body, { childList: true, subtree: true });
    return () => {
      observer.disconnect();
      document.removeEventListener('focusin', remember);
    };
  }, []);
}
