/** What is shown where an answer should be, and how to ask again. */
import { ApiError } from '@backendai/api';
import { CircleAlert, WifiOff } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from './host';
import { Button } from './kit/Button';
import { Banner } from './kit/States';
import { FromService } from './FromService';

interface Props {
  error: Error;
  /** What was answered before is still on the page. */
  stale?: boolean;
  onRetry(): void;
}

export function LoadError({ error, stale = false, onRetry }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const refused = error instanceof ApiError ? error : null;
  if (refused?.needsLogin) {
    return (
      <Banner
        tone="warning"
        icon={<CircleAlert size={18} />}
        action={<Button onClick={host.login}>{t('state.loginAction')}</Button>}
      >
        <strong>{t('state.login')}</strong>
      </Banner>
    );
  }
  const unreachable = !refused || refused.status === 0;
  return (
    <Banner
      tone={stale ? 'warning' : 'error'}
      icon={unreachable ? <WifiOff size={18} /> : <CircleAlert size={18} />}
      urgent={!stale}
      action={<Button onClick={onRetry}>{t('state.retry')}</Button>}
    >
      <strong>{t(stale ? 'state.stale' : 'state.failed')}</strong>{' '}
      {unreachable ? t('state.unreachable') : <FromService text={error.message} />}
      {refused?.requestId ? (
        <span className="bai-request-id">{t('state.request', { id: refused.requestId })}</span>
      ) : null}
    </Banner>
  );
}
