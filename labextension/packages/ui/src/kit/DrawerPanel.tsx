import MuiDrawer from '@mui/material/Drawer';
import type { ReactNode } from 'react';

export interface DrawerProps {
  open: boolean;
  label: string;
  /** Where it comes from; the start of the line, if nothing is said. */
  side?: 'start' | 'end';
  onClose(): void;
  children: ReactNode;
}

/** A panel that slides in where the screen is too narrow to keep it open. */
export function DrawerPanel({
  open,
  label,
  side = 'start',
  onClose,
  children
}: DrawerProps): JSX.Element {
  return (
    <MuiDrawer
      open={open}
      onClose={onClose}
      anchor={side === 'start' ? 'left' : 'right'}
      slotProps={{
        paper: { 'aria-label': label, className: `bai-drawer bai-drawer-${side}` }
      }}
    >
      {children}
    </MuiDrawer>
  );
}
