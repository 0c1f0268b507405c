/** What JupyterHub's page says around the launch form, in the reader's language too. */
import { FromService } from '@backendai/ui/launch';
import type { i18n } from 'i18next';
import { createRoot } from 'react-dom/client';
import { I18nextProvider } from 'react-i18next';

/** What JupyterHub writes before whatever its spawner was refused with. */
const ERROR = /^\s*Error:\s*/;

export function sayAround(page: ParentNode, translator: i18n, language: string): void {
  const { t } = translator;
  const words: Record<string, (name: string) => string> = {
    title: () => t('launch.page.title'),
    titleFor: name => t('launch.page.titleFor', { name }),
    about: () => t('launch.page.about')
  };
  page.querySelectorAll<HTMLElement>('[data-backendai-say]').forEach(place => {
    const { backendaiSay = '', backendaiName = '' } = place.dataset;
    const say = words[backendaiSay];
    if (say) {
      place.textContent = say(backendaiName);
      place.lang = language;
    }
  });
  page.querySelectorAll<HTMLElement>('#spawn_form button[type=submit]').forEach(button => {
    button.textContent = t('launch.page.start');
    button.lang = language;
  });
  page.querySelectorAll<HTMLElement>('.spawn-error-msg').forEach(place => {
    const text = (place.textContent ?? '').replace(ERROR, '').trim();
    place.lang = language;
    createRoot(place).render(
      <I18nextProvider i18n={translator}>
        <FromService text={text} />
      </I18nextProvider>
    );
  });
}
