import MuiDrawer from '@mui/material/Drawer';
import type { ReactNode } from 'react';

interface Props {
  open: boolean;
  label: string;
  /** Where it comes from; the start of the line, if nothing is said. */
  side?: 'start' | 'end';
  onClose(): void;
  children: ReactNode;
}

export function DrawerPanel({
  open,
  label,
  side = 'start',
  onClose,
  children
}: Props): JSX.Element {
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
