import type { ShownSession } from '@backendai/api';
import { Hourglass } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { showDuration } from '../durations';
import { useHost } from '../host';
import { Banner } from '../kit/States';
import { exactly } from '../times';

const TICK = 1000;
/** Less than this is urgent, and counted in seconds. */
const SOON = 300;

/** When a session ends by itself if nobody uses it, where that is known. */
export function Ending({ session }: { session: ShownSession }): JSX.Element | null {
  const { t } = useTranslation();
  const { language } = useHost();
  const { idle_expires_at: idle } = session;
  const [now, setNow] = useState(() => Date.now());
  const ends = idle && session.status === 'RUNNING' ? Date.parse(idle) : null;
  useEffect(() => {
    if (ends === null) {
      return undefined;
    }
    const timer = setInterval(() => setNow(Date.now()), TICK);
    return () => clearInterval(timer);
  }, [ends]);
  if (ends === null || !idle) {
    return null;
  }
  const left = Math.max(0, Math.round((ends - now) / 1000));
  const soon = left < SOON;
  const shown = soon ? left : left - (left % 60);
  return (
    <Banner tone={soon ? 'error' : 'warning'} icon={<Hourglass size={18} />}>
      <strong>{t('sessionPage.endsIn', { duration: showDuration(shown, language) })}</strong>{' '}
      <span title={exactly(idle, language)}>{t('sessionPage.endsIdle')}</span>
    </Banner>
  );
}
