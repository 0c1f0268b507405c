import { useEffect, useState } from 'react';
import type { DrawerProps } from './DrawerPanel';
import { later } from './later';

const DrawerPanel = later(async () => (await import('./DrawerPanel')).DrawerPanel);

/** A panel that slides in where the screen is too narrow to keep it open. */
export function Drawer(props: DrawerProps): JSX.Element | null {
  const { open } = props;
  const [used, setUsed] = useState(open);
  useEffect(() => setUsed(was => was || open), [open]);
  return used ? <DrawerPanel {...props} /> : null;
}
