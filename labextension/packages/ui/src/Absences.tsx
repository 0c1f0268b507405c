/** People are told of parts that do not come, such as the menu they have opened. */
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from './host';
import { ABSENT } from './kit/later';

export function Absences(): null {
  const { t } = useTranslation();
  const { notify } = useHost();
  useEffect(() => {
    const tell = (): void => notify('error', `${t('state.failed')} ${t('state.outdated')}`);
    window.addEventListener(ABSENT, tell);
    return () => window.removeEventListener(ABSENT, tell);
  }, [t, notify]);
  return null;
}
