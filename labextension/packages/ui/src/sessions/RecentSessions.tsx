import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { PageLink } from '../PageLink';
import { useLooksOnly } from '../pages/useLooksOnly';
import { meQuery, pageQuery } from '../queries';
import { usePolling } from '../stream';
import { SessionTable } from './SessionTable';
import { useStopSession } from './stop';
import { EVERYBODY, type SessionsView } from './view';

const SHOWN = 5;

/** One's last few sessions, whatever became of them; everybody's for who has none. */
export function RecentSessions(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const everybody = useLooksOnly();
  const polling = usePolling();
  const { ask, dialog } = useStopSession();
  const view: SessionsView = {
    status: 'all',
    order: '-created_at',
    owner: everybody ? EVERYBODY : (me?.name ?? ''),
    after: '',
    limit: SHOWN
  };
  const { data, error, refetch } = useQuery({
    ...pageQuery(host, view, polling),
    enabled: host.visible && me !== undefined
  });
  const sessions = data?.items.slice(0, SHOWN) ?? [];
  return (
    <section className="bai-recent" aria-labelledby="bai-recent">
      <div className="bai-section-head">
        <h2 id="bai-recent">{t('start.recent')}</h2>
        <PageLink to="/sessions?status=all">{t('start.allSessions')}</PageLink>
      </div>
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {!data && !error ? <Skeleton rows={3} label={t('state.loading')} /> : null}
      {data && sessions.length === 0 ? (
        <p className="bai-nothing">
          {t(everybody ? 'sessions.emptyAllTitle' : 'sessions.emptyAllText')}
        </p>
      ) : null}
      {sessions.length ? (
        <div className="bai-card bai-table-card">
          <SessionTable sessions={sessions} showOwner={everybody} onStop={ask} />
        </div>
      ) : null}
      {dialog}
    </section>
  );
}
