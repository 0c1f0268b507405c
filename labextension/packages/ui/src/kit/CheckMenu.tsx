import type { ReactNode } from 'react';
import { Button } from './Button';
import { later } from './later';
import { useAnchor } from './useAnchor';

const CheckEntries = later(async () => (await import('./CheckEntries')).CheckEntries);

export interface CheckEntry {
  key: string;
  text: string;
  checked: boolean;
}

interface Props {
  label: string;
  text?: string;
  icon: ReactNode;
  entries: readonly CheckEntry[];
  onToggle(key: string): void;
}

/** A button that opens a list of which any number is chosen. */
export function CheckMenu({ label, text, icon, entries, onToggle }: Props): JSX.Element {
  const { anchor, used, toggle, close } = useAnchor();
  return (
    <>
      <Button
        {...CheckEntries.expecting}
        kind="quiet"
        icon={icon}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={anchor !== null}
        onClick={toggle}
      >
        <span className="bai-menu-text">{text}</span>
      </Button>
      {used ? (
        <CheckEntries
          anchor={anchor}
          label={label}
          entries={entries}
          onToggle={onToggle}
          onClose={close}
        />
      ) : null}
    </>
  );
}
