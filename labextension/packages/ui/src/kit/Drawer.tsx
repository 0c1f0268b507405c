import MuiDrawer from '@mui/material/Drawer';
import type { ReactNode } from 'react';

interface Props {
  open: boolean;
  label: string;
  onClose(): void;
  children: ReactNode;
}

/** A panel that slides in where the screen is too narrow to keep it open. */
export function Drawer({ open, label, onClose, children }: Props): JSX.Element {
  return (
    <MuiDrawer
      open={open}
      onClose={onClose}
      slotProps={{ paper: { 'aria-label': label, className: 'bai-drawer' } }}
    >
      {children}
    </MuiDrawer>
  );
}
