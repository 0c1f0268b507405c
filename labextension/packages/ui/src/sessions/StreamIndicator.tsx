import { useTranslation } from 'react-i18next';
import { useStreamState } from '../stream';

/** Whether what is on the page follows the cluster as it happens. */
export function StreamIndicator(): JSX.Element {
  const { t } = useTranslation();
  const state = useStreamState();
  const word = state === 'refused' ? 'retrying' : state;
  const hint =
    word === 'live' ? t('live.liveHint') : word === 'retrying' ? t('live.retryingHint') : '';
  return (
    <span role="status" className="bai-stream" data-state={word} title={hint}>
      <span className="bai-dot" aria-hidden />
      {t(`live.${word}`)}
    </span>
  );
}
