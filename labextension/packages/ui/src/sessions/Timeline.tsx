import type { ShownSession } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { showDuration } from '../durations';
import { useHost } from '../host';
import { historyQuery } from '../queries';
import { exactly } from '../times';
import { phasesOf, sharesOf } from './phases';
import { isEnded } from './status';

const TICK = 5000;

/** How long it waited, started and ran: as a line, and in words below it. */
export function Timeline({ session }: { session: ShownSession }): JSX.Element | null {
  const { t } = useTranslation();
  const host = useHost();
  const events = useQuery(historyQuery(host, session.id, false)).data;
  const [now, setNow] = useState(() => Date.now());
  const over = isEnded(session.status);
  useEffect(() => {
    if (over) {
      return undefined;
    }
    const timer = setInterval(() => setNow(Date.now()), TICK);
    return () => clearInterval(timer);
  }, [over]);
  const phases = phasesOf(session, events);
  const shares = sharesOf(phases, now);
  if (phases.length === 0) {
    return null;
  }
  return (
    <section className="bai-card bai-timeline" aria-labelledby="timeline">
      <h2 id="timeline">{t('timeline.title')}</h2>
      <div className="bai-timeline-line" aria-hidden>
        {phases.map(({ name, to }, index) => (
          <span
            key={name}
            data-phase={name}
            data-now={to === null ? '' : undefined}
            style={{ flexGrow: shares[index] }}
          />
        ))}
      </div>
      <ol>
        {phases.map(({ name, from, to }) => (
          <li key={name} data-phase={name}>
            <span className="bai-timeline-name">{t(`timeline.${name}`)}</span>
            <strong>
              {showDuration(Math.round(((to ?? now) - from) / 1000), host.language)}
            </strong>
            <time dateTime={new Date(from).toISOString()} className="bai-reason">
              {exactly(new Date(from).toISOString(), host.language)}
            </time>
          </li>
        ))}
      </ol>
    </section>
  );
}
