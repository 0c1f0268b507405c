import { EllipsisVertical } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button } from './Button';
import { later } from './later';
import { useAnchor } from './useAnchor';

const MenuEntries = later(async () => (await import('./MenuEntries')).MenuEntries);

export interface MenuEntry {
  key: string;
  text: string;
  icon?: ReactNode;
  href?: string;
  onSelect?(): void;
  selected?: boolean;
  lang?: string;
  /** Why it cannot be chosen now. */
  disabled?: string;
  danger?: boolean;
}

interface Props {
  label: string;
  text?: ReactNode;
  icon: ReactNode;
  size?: 'small';
  entries: MenuEntry[];
}

/** A button that opens a list of actions. */
export function MenuButton({ label, text, icon, size, entries }: Props): JSX.Element {
  const { anchor, used, toggle, close } = useAnchor();
  return (
    <>
      <Button
        {...MenuEntries.expecting}
        kind="quiet"
        icon={icon}
        aria-label={label}
        {...(size ? { size } : {})}
        {...(text ? {} : { title: label })}
        aria-haspopup="menu"
        aria-expanded={anchor !== null}
        onClick={toggle}
      >
        <span className="bai-menu-text">{text}</span>
      </Button>
      {used ? <MenuEntries anchor={anchor} entries={entries} onClose={close} /> : null}
    </>
  );
}

interface RowMenuProps {
  label: string;
  /** Asked for when it is opened: there are many rows, and few are asked. */
  entries(): MenuEntry[];
}

/** The menu of one of many rows: it costs next to nothing until it is opened. */
export function RowMenu({ label, entries }: RowMenuProps): JSX.Element {
  const { anchor, used, toggle, close } = useAnchor();
  return (
    <>
      <button
        {...MenuEntries.expecting}
        type="button"
        className="bai-row-menu"
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={anchor !== null}
        onClick={toggle}
      >
        <EllipsisVertical size={16} aria-hidden />
      </button>
      {used ? <MenuEntries anchor={anchor} entries={entries()} onClose={close} /> : null}
    </>
  );
}
