import MuiMenu from '@mui/material/Menu';
import MuiMenuItem from '@mui/material/MenuItem';
import { Check } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { Button } from './Button';

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
  const [anchor, setAnchor] = useState<HTMLElement | null>(null);
  return (
    <>
      <Button
        kind="quiet"
        icon={icon}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={anchor !== null}
        onClick={event => setAnchor(event.currentTarget)}
      >
        <span className="bai-menu-text">{text}</span>
      </Button>
      <MuiMenu
        anchorEl={anchor}
        open={anchor !== null}
        onClose={() => setAnchor(null)}
        slotProps={{ list: { 'aria-label': label } }}
      >
        {entries.map(entry => (
          <MuiMenuItem
            key={entry.key}
            className="bai-menu-item"
            role="menuitemcheckbox"
            aria-checked={entry.checked}
            onClick={() => onToggle(entry.key)}
          >
            <Check size={16} aria-hidden className={entry.checked ? '' : 'bai-unchecked'} />
            {entry.text}
          </MuiMenuItem>
        ))}
      </MuiMenu>
    </>
  );
}
