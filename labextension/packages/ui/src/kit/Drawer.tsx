import { openedLater } from './later';

/** A panel that slides in where the screen is too narrow to keep it open. */
export const Drawer = openedLater(async () => (await import('./DrawerPanel')).DrawerPanel);
