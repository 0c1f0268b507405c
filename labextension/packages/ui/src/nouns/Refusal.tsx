import { ApiError } from '@backendai/api';
import { CircleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Banner } from '../kit/States';
import { FromService } from '../FromService';

/** What the service said no to, and how an administrator finds it in the log. */
export function Refusal({ error }: { error: Error }): JSX.Element {
  const { t } = useTranslation();
  return (
    <Banner tone="error" icon={<CircleAlert size={18} />} urgent>
      <FromService className="bai-line" text={error.message} />
      {error instanceof ApiError && error.requestId ? (
        <span className="bai-request-id">{t('state.request', { id: error.requestId })}</span>
      ) : null}
    </Banner>
  );
}
