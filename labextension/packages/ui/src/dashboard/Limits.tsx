import type { Resources } from '@backendai/api';
import { useTranslation } from 'react-i18next';
import { parseAmount, showAmount, sortSlots } from '../amounts';
import { useHost } from '../host';
import { Meter } from '../kit/Meter';
import { slotTitle } from '../slots';
import { narrowest } from './limits';

/** How much of one's limits is used, and which of them is the nearest. */
export function Limits({ resources }: { resources: Resources }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const limits = narrowest(resources);
  return (
    <section className="bai-card" aria-labelledby="bai-limits">
      <h2 id="bai-limits">{t('dashboard.limits')}</h2>
      {limits.length === 0 ? <p className="bai-help">{t('dashboard.noLimits')}</p> : null}
      <div className="bai-meters">
        {limits.map(({ slot, used, cap, left, scope, name }) => {
          const show = (amount: number): string => showAmount(slot, amount, language);
          return (
            <div key={slot} className="bai-limit-meter">
              <Meter
                label={title(slot, t)}
                text={t('usage.of', { used: show(used), limit: show(cap) })}
                value={used}
                max={cap}
              />
              <span className="bai-help">
                {t('dashboard.left', {
                  left: show(left),
                  scope: t(`scope.${scope}`, { defaultValue: scope }),
                  name
                })}
              </span>
            </div>
          );
        })}
      </div>
    </section>
  );
}

function title(slot: string, t: ReturnType<typeof useTranslation>['t']): string {
  return t(`limitSlot.${slot}`, { defaultValue: slotTitle(slot, t) });
}

function inOrder(room: Resources['room']): Resources['room'] {
  const order = sortSlots(room.map(each => each.slot));
  return [...room].sort((one, other) => order.indexOf(one.slot) - order.indexOf(other.slot));
}

/** What of the cluster is free for anybody. */
export function FreeNow({ resources }: { resources: Resources }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  return (
    <section className="bai-card" aria-labelledby="bai-free">
      <h2 id="bai-free">{t('dashboard.cluster')}</h2>
      {resources.room.length === 0 ? (
        <p className="bai-help">{t('dashboard.noNodes')}</p>
      ) : null}
      <div className="bai-meters">
        {inOrder(resources.room).map(({ slot, total, free, largest }) => {
          const read = (text: string): number => parseAmount(slot, text) ?? 0;
          const show = (text: string): string => showAmount(slot, read(text), language);
          const used = read(total) - read(free);
          return (
            <div key={slot} className="bai-limit-meter">
              <Meter
                label={slotTitle(slot, t)}
                text={t('usage.of', {
                  used: showAmount(slot, used, language),
                  limit: show(total)
                })}
                value={used}
                max={read(total)}
              />
              <span className="bai-help">
                {t('dashboard.free', { free: show(free), largest: show(largest) })}
              </span>
            </div>
          );
        })}
      </div>
    </section>
  );
}
