/** The query of the address that the page stands at, as it is written there. */
import { useCallback, useEffect, useMemo, useRef } from 'react';
import { useRouter, type RouterObject } from 'wouter';

type Next = Record<string, string> | URLSearchParams;
type Change = Next | ((old: URLSearchParams) => Next);

export type SetAddress = (change: Change, options?: { replace?: boolean }) => void;

/** Read the query; the router's own `useSearchParams` decodes it twice, so that a `%`
 * in somebody's words would become something else. */
export function useQueryText(): string {
  const router = useRouter();
  return router.searchHook(router).replace(/^\?/, '');
}

/** The query, and how to have another; the path stays as it is written, too. */
export function useAddress(): [URLSearchParams, SetAddress] {
  const router: RouterObject = useRouter();
  const text = useQueryText();
  const [path, navigate] = router.hook(router);
  const address = useMemo(() => new URLSearchParams(text), [text]);
  const latest = useRef({ address, path, navigate, router });
  useEffect(() => {
    latest.current = { address, path, navigate, router };
  });
  const set = useCallback<SetAddress>((change, options) => {
    const now = latest.current;
    const next = new URLSearchParams(
      typeof change === 'function' ? change(now.address) : change
    );
    // Who changes it twice in a row means both.
    now.address = next;
    const query = next.toString();
    now.router.aroundNav(now.navigate, query ? `${now.path}?${query}` : now.path, options);
  }, []);
  return [address, set];
}
