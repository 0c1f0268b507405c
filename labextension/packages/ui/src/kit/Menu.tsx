import MuiMenu from '@mui/material/Menu';
import MuiMenuItem from '@mui/material/MenuItem';
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
}

interface Props {
  label: string;
  text?: ReactNode;
  icon: ReactNode;
  entries: MenuEntry[];
}

/** A button that opens a list of actions. */
export function MenuButton({ label, text, icon, entries }: Props): JSX.Element {
  const [anchor, setAnchor] = useState<HTMLElement | null>(null);
  const close = (): void => setAnchor(null);
  return (
    <>
      <Button
        kind="quiet"
        icon={icon}
        aria-label={label}
        {...(text ? {} : { title: label })}
        aria-haspopup="menu"
        aria-expanded={anchor !== null}
        onClick={event => setAnchor(event.currentTarget)}
      >
        <span className="bai-menu-text">{text}</span>
      </Button>
      <MuiMenu
        anchorEl={anchor}
        open={anchor !== null}
        onClose={close}
        anchorOrigin={{ vertical: 'bottom', horizontal: 'right' }}
        transformOrigin={{ vertical: 'top', horizontal: 'right' }}
      >
        {entries.map(entry => (
          <MuiMenuItem
            key={entry.key}
            className="bai-menu-item"
            selected={entry.selected ?? false}
            lang={entry.lang}
            {...(entry.href ? { component: 'a', href: entry.href } : {})}
            onClick={() => {
              close();
              entry.onSelect?.();
            }}
          >
            {entry.icon}
            {entry.text}
          </MuiMenuItem>
        ))}
      </MuiMenu>
    </>
  );
}
