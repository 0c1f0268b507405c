import type { MouseEvent, ReactNode } from 'react';
import { useHost } from './host';

interface Props {
  /** One of our pages: `/sessions/1b…`. */
  to: string;
  className?: string;
  /** The page is the one that is shown. */
  current?: boolean;
  children: ReactNode;
}

/** A way to another of our pages: a link where pages have addresses, a button elsewhere. */
export function PageLink({ to, className, current = false, children }: Props): JSX.Element {
  const host = useHost();
  const href = host.hrefOf(to);
  const here = current ? ({ 'aria-current': 'page' } as const) : {};
  if (href === null) {
    return (
      <button
        type="button"
        className={`bai-link ${className ?? ''}`}
        onClick={() => host.open(to)}
        {...here}
      >
        {children}
      </button>
    );
  }
  const follow = (event: MouseEvent): void => {
    const modified = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (!modified && event.button === 0) {
      event.preventDefault();
      host.open(to);
    }
  };
  return (
    <a className={className} href={href} onClick={follow} {...here}>
      {children}
    </a>
  );
}
