import MuiMenu from '@mui/material/Menu';
import MuiMenuItem from '@mui/material/MenuItem';
import { EllipsisVertical } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { Button } from './Button';

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
  const [anchor, setAnchor] = useState<HTMLElement | null>(null);
  const close = (): void => setAnchor(null);
  return (
    <>
      <Button
        kind="quiet"
        icon={icon}
        aria-label={label}
        {...(size ? { size } : {})}
        {...(text ? {} : { title: label })}
        aria-haspopup="menu"
        aria-expanded={anchor !== null}
        onClick={event => setAnchor(event.currentTarget)}
      >
        <span className="bai-menu-text">{text}</span>
      </Button>
      <Entries anchor={anchor} entries={entries} onClose={close} />
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
  const [anchor, setAnchor] = useState<HTMLElement | null>(null);
  const [used, setUsed] = useState(false);
  return (
    <>
      <button
        type="button"
        className="bai-row-menu"
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={anchor !== null}
        onClick={event => {
          setUsed(true);
          setAnchor(event.currentTarget);
        }}
      >
        <EllipsisVertical size={16} aria-hidden />
      </button>
      {used ? (
        <Entries anchor={anchor} entries={entries()} onClose={() => setAnchor(null)} />
      ) : null}
    </>
  );
}

interface EntriesProps {
  /** What it was opened by; null while it is not open. */
  anchor: HTMLElement | null;
  entries: MenuEntry[];
  onClose(): void;
}

function Entries({ anchor, entries, onClose }: EntriesProps): JSX.Element {
  return (
    <MuiMenu
      anchorEl={anchor}
      open={anchor !== null}
      onClose={onClose}
      anchorOrigin={{ vertical: 'bottom', horizontal: 'right' }}
      transformOrigin={{ vertical: 'top', horizontal: 'right' }}
    >
      {entries.map(entry => (
        <MuiMenuItem
          key={entry.key}
          className="bai-menu-item"
          selected={entry.selected ?? false}
          lang={entry.lang}
          data-danger={entry.danger ? '' : undefined}
          {...(entry.href ? { component: 'a', href: entry.href } : {})}
          {...(entry.disabled ? { 'aria-disabled': true } : {})}
          onClick={() => {
            if (entry.disabled) {
              return;
            }
            onClose();
            entry.onSelect?.();
          }}
        >
          {entry.icon}
          <span>
            {entry.text}
            {entry.disabled ? <span className="bai-help">{entry.disabled}</span> : null}
          </span>
        </MuiMenuItem>
      ))}
    </MuiMenu>
  );
}
