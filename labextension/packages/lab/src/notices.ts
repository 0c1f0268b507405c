/** Tells of sessions that have ended, in JupyterLab's notifications. */
import type { Session } from '@backendai/api';
import { createTranslator, pickLanguage } from '@backendai/ui/i18n';
import { sayEnds } from '@backendai/ui/ends';
import { Notification } from '@jupyterlab/apputils';

export async function tellEnds(ended: readonly Session[], language: string): Promise<void> {
  const { t } = await createTranslator(pickLanguage([language]));
  for (const { level, text } of sayEnds(ended, t)) {
    Notification.emit(text, level, { autoClose: 6000 });
  }
}
