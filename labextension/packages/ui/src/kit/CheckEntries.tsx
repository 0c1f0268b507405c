/** What a menu of any number of choices shows while it is open. */
import MuiMenu from '@mui/material/Menu';
import MuiMenuItem from '@mui/material/MenuItem';
import { Check } from 'lucide-react';
import type { CheckEntry } from './CheckMenu';

interface Props {
  /** What it was opened by; null while it is not open. */
  anchor: HTMLElement | null;
  label: string;
  entries: readonly CheckEntry[];
  onToggle(key: string): void;
  onClose(): void;
}

export function CheckEntries({
  anchor,
  label,
  entries,
  onToggle,
  onClose
}: Props): JSX.Element {
  return (
    <MuiMenu
      anchorEl={anchor}
      open={anchor !== null}
      onClose={onClose}
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
  );
}
