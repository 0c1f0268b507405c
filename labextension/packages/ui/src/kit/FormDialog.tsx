import { openedLater } from './later';

/** A form in front of the page: Enter sends it, Escape leaves it. */
export const FormDialog = openedLater(async () => (await import('./FormPanel')).FormPanel);
