/** A button, and whether what it opens is open. */
import { useState, type MouseEvent } from 'react';

interface Anchor {
  /** What it was opened by; null while it is not open. */
  anchor: HTMLElement | null;
  /** Whether it has ever been open. */
  used: boolean;
  toggle(event: MouseEvent<HTMLElement>): void;
  close(): void;
}

export function useAnchor(): Anchor {
  const [anchor, setAnchor] = useState<HTMLElement | null>(null);
  const [used, setUsed] = useState(false);
  return {
    anchor,
    used,
    toggle: ({ currentTarget }) => {
      setUsed(true);
      setAnchor(open => (open ? null : currentTarget));
    },
    close: () => setAnchor(null)
  };
}
