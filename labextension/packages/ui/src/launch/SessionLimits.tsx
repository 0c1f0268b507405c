import { useTranslation } from 'react-i18next';
import { SESSIONS } from '../amounts';
import { slotTitle } from '../slots';
import { LimitLines } from './LimitLines';
import type { Supply } from './supply';

/** How many sessions there may be: no resource, so there is nothing to type. */
export function SessionLimits({
  supply,
  language
}: {
  supply: Supply;
  language: string;
}): JSX.Element | null {
  const { t } = useTranslation();
  if (!supply.limits.some(({ slot, cap }) => slot === SESSIONS && cap)) {
    return null;
  }
  return (
    <div className="bai-field">
      <strong>{slotTitle(SESSIONS, t)}</strong>
      <span className="bai-help">
        <LimitLines slot={SESSIONS} supply={supply} language={language} />
      </span>
    </div>
  );
}
