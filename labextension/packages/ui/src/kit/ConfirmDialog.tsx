import { openedLater } from './later';

/** Ask before something is lost. The harmless answer has the focus. */
export const ConfirmDialog = openedLater(
  async () => (await import('./ConfirmPanel')).ConfirmPanel
);
