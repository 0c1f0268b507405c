/** What the scheduler says would become of a choice, and the smallest change that helps. */
import type { DryRun, PossibleChange } from '@backendai/api';
import { CircleCheck, CircleX, Clock } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { FromService } from '../FromService';
import { Banner } from '../kit/States';
import { exactly } from '../times';

interface Props {
  outcome: DryRun;
  language: string;
  onApply(change: PossibleChange): void;
}

export function Outlook({ outcome, language, onApply }: Props): JSX.Element {
  const { t } = useTranslation();
  const { refused, why } = outcome;
  if (refused.length > 0) {
    return (
      <Banner tone="error" icon={<CircleX size={18} />}>
        <strong>{t('launch.refused')}</strong>
        <Lines texts={refused.map(each => each.text)} />
      </Banner>
    );
  }
  if (!why) {
    return (
      <Banner tone="success" icon={<CircleCheck size={18} />}>
        <strong>{t('launch.now')}</strong>
        <span className="bai-line">
          {outcome.nodes.length > 0
            ? t('launch.nowOn', { nodes: outcome.nodes.join(', ') })
            : t('launch.nowText')}
        </span>
      </Banner>
    );
  }
  const change = why.changes.find(each => each.slots ?? each.resource_group);
  const starts = why.starts_at;
  const when = why.at_the_earliest ? 'launch.startsEarliest' : 'launch.startsLatest';
  return (
    <Banner
      tone="warning"
      icon={<Clock size={18} />}
      action={
        change ? (
          <button type="button" className="bai-apply" onClick={() => onApply(change)}>
            {t('launch.apply')}
          </button>
        ) : undefined
      }
    >
      <strong>{t('launch.waitPlace', { place: why.position, waiting: why.waiting })}</strong>
      <Lines texts={why.reasons} />
      {change ? (
        <span className="bai-line">
          {t('launch.wouldStart')}{' '}
          <b>
            <FromService text={change.text} />
          </b>
        </span>
      ) : null}
      <span className="bai-line">
        {starts ? t(when, { moment: exactly(starts, language) }) : t('launch.startsUnknown')}
        {why.hangs_on ? (
          <>
            {' '}
            (<FromService text={why.hangs_on} />)
          </>
        ) : null}
      </span>
    </Banner>
  );
}

function Lines({ texts }: { texts: string[] }): JSX.Element {
  return (
    <>
      {texts.map(text => (
        <FromService key={text} text={text} className="bai-line" />
      ))}
    </>
  );
}
