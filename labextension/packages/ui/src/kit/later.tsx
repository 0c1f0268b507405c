/** Parts whose code comes when they are first needed, such as what a button opens. */
import { useEffect, useRef, useState, type ComponentType } from 'react';
import { patiently } from '../patiently';

interface Later<Props> {
  (props: Props): JSX.Element | null;
  /** For a button that shows it: who comes to the button has it come already. */
  expecting: { onPointerEnter(): void; onFocus(): void };
}

/** What happens in the window when a part that somebody wants does not come. */
export const ABSENT = 'bai-absent';

/** What fails to come is asked for again the next time; nothing is shown until then. */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>
): Later<Props> {
  let come: ComponentType<Props> | null = null;
  const fetchIt = async (): Promise<ComponentType<Props>> => (come ??= await patiently(load));

  function Late(props: Props): JSX.Element | null {
    const [Part, setPart] = useState(() => come);
    const told = useRef(false);
    useEffect(() => {
      if (Part) {
        return undefined;
      }
      let shown = true;
      fetchIt().then(
        found => shown && setPart(() => found),
        () => {
          // To be told draws the page anew, which asks again.
          if (!told.current) {
            told.current = true;
            window.dispatchEvent(new Event(ABSENT));
          }
        }
      );
      return () => {
        shown = false;
      };
    });
    return Part ? <Part {...props} /> : null;
  }
  const expect = (): void => void fetchIt().catch(() => undefined);
  return Object.assign(Late, { expecting: { onPointerEnter: expect, onFocus: expect } });
}

/** The same for what opens in front of a page: it comes when it is first opened. */
export function openedLater<Props extends { open: boolean }>(
  load: () => Promise<ComponentType<Props>>
): ComponentType<Props> {
  const Part = later(load);
  return function Opened(props: Props): JSX.Element | null {
    const { open } = props;
    const [used, setUsed] = useState(open);
    // What has been open is there to close as well.
    useEffect(() => setUsed(was => was || open), [open]);
    return used ? <Part {...props} /> : null;
  };
}
