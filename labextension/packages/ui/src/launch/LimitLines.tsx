import { useTranslation } from 'react-i18next';
import { parseAmount, showAmount } from '../amounts';
import type { Supply } from './supply';

interface Props {
  slot: string;
  supply: Supply;
  language: string;
}

/** The limits on one slot, each with what is in use of it. */
export function LimitLines({ slot, supply, language }: Props): JSX.Element {
  const { t } = useTranslation();
  const show = (amount: string): string =>
    showAmount(slot, parseAmount(slot, amount) ?? 0, language);
  const limits = supply.limits.filter(each => each.slot === slot && each.cap);
  return (
    <>
      {limits.map(({ scope, name, used, cap }) => (
        <span key={`${scope} ${name}`} className="bai-limit">
          {t('launch.limit', {
            scope: t(`scope.${scope}`, { defaultValue: scope }),
            name,
            used: show(used),
            cap: show(cap ?? '')
          })}
        </span>
      ))}
    </>
  );
}
