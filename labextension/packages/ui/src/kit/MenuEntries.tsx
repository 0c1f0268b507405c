/** What a menu shows while it is open. */
import MuiMenu from '@mui/material/Menu';
import MuiMenuItem from '@mui/material/MenuItem';
import type { MenuEntry } from './Menu';

interface Props {
  /** What it was opened by; null while it is not open. */
  anchor: HTMLElement | null;
  entries: MenuEntry[];
  onClose(): void;
}

export function MenuEntries({ anchor, entries, onClose }: Props): JSX.Element {
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
