import { CircleCheck, CircleX, Clock, Unplug } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { SESSIONS, showAmount } from '../amounts';
import { Banner } from '../kit/States';
import { slotTitle } from '../slots';
import type { Judgement, Shortage } from './judgement';

const LOOKS = {
  now: { tone: 'success', Icon: CircleCheck },
  wait: { tone: 'warning', Icon: Clock },
  never: { tone: 'error', Icon: CircleX },
  unknown: { tone: 'warning', Icon: Unplug }
} as const;

/** What would happen on Start, in words. */
export function Verdict({
  judgement,
  language
}: {
  judgement: Judgement;
  language: string;
}): JSX.Element {
  const { t } = useTranslation();
  const { verdict } = judgement;
  const { tone, Icon } = LOOKS[verdict];
  const shortages = 'shortages' in judgement ? judgement.shortages : [];
  const byLimit = verdict === 'never' && shortages.every(each => each.limit);
  const say = (shortage: Shortage): string => {
    const { slot, asked, have, limit, scattered } = shortage;
    const ofLimit = slot === SESSIONS ? 'Sessions' : 'Limit';
    const kind = limit ? ofLimit : scattered ? 'Node' : 'Slot';
    return t(`launch.${verdict}${kind}`, {
      slot: slotTitle(slot, t),
      asked: showAmount(slot, asked, language),
      have: showAmount(slot, have, language),
      name: limit?.name,
      scope: limit && t(`scope.${limit.scope}`, { defaultValue: limit.scope })
    });
  };
  return (
    <Banner tone={tone} icon={<Icon size={18} />}>
      <strong>{t(byLimit ? 'launch.neverTitleLimit' : `launch.${verdict}`)}</strong>
      {shortages.map(shortage => (
        <span key={say(shortage)} className="bai-line">
          {say(shortage)}
        </span>
      ))}
      {verdict === 'never' ? null : (
        <span className="bai-line">{t(`launch.${verdict}Text`)}</span>
      )}
    </Banner>
  );
}
