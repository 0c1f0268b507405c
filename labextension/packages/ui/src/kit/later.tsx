/** Parts whose code comes when they are first needed, such as what a button opens. */
import { useEffect, useState, type ComponentType } from 'react';

interface Later<Props> {
  (props: Props): JSX.Element | null;
  /** Have it come already: somebody is about to need it. */
  expect(): void;
}

/** What fails to come is asked for again the next time; nothing is shown until then. */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>
): Later<Props> {
  let come: ComponentType<Props> | null = null;
  const fetchIt = async (): Promise<ComponentType<Props>> => (come ??= await load());

  function Late(props: Props): JSX.Element | null {
    const [Part, setPart] = useState(() => come);
    useEffect(() => {
      if (Part) {
        return undefined;
      }
      let shown = true;
      fetchIt().then(
        found => shown && setPart(() => found),
        () => undefined
      );
      return () => {
        shown = false;
      };
    });
    return Part ? <Part {...props} /> : null;
  }
  return Object.assign(Late, {
    expect: () => void fetchIt().catch(() => undefined)
  });
}
