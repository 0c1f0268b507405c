import type { QueuePlace, Why } from '@backendai/api';
import { useTranslation } from 'react-i18next';
import { FromService } from '../FromService';
import { useHost } from '../host';
import { exactly } from '../times';

/** Its place in the queue, in a few words; nothing where nobody knows it. */
export function Place({ place }: { place: QueuePlace | null }): JSX.Element | null {
  const { t } = useTranslation();
  return place ? (
    <span className="bai-reason">{t('waiting.place', { place: place.position })}</span>
  ) : null;
}

/** Everything that is known of why a session waits, what would help, and until when. */
export function Waiting({ why }: { why: Why }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const { position, reasons, changes, starts_at: starts, hangs_on: hangs } = why;
  const when = why.at_the_earliest ? 'waiting.earliest' : 'waiting.latest';
  return (
    <section className="bai-card" aria-labelledby="waiting">
      <h2 id="waiting">{t('waiting.title')}</h2>
      <div className="bai-waiting" role="status">
        {position ? <strong>{t('waiting.place', { place: position })}</strong> : null}
        <ul>
          {reasons.map(reason => (
            <li key={reason}>
              <FromService text={reason} />
            </li>
          ))}
        </ul>
        {changes.length ? (
          <>
            <p>{t('waiting.changes')}</p>
            <ul>
              {changes.map(change => (
                <li key={change.text}>
                  <FromService text={change.text} />
                </li>
              ))}
            </ul>
          </>
        ) : null}
        <p>
          {starts ? t(when, { moment: exactly(starts, language) }) : t('waiting.unknown')}
          {hangs ? (
            <>
              {' '}
              (<FromService text={hangs} />)
            </>
          ) : null}
        </p>
      </div>
    </section>
  );
}
