/** The sidebar's view of one's live sessions: names, states, and what can be done. */
import type { Session } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { Plus, SquareTerminal } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { LoadError } from '../LoadError';
import { Button, IconButton } from '../kit/Button';
import { EmptyState, Skeleton } from '../kit/States';
import { PageLink } from '../PageLink';
import { meQuery, pageQuery } from '../queries';
import { usePolling } from '../stream';
import { SessionActions } from '../sessions/SessionTable';
import { StatusWithReason } from '../sessions/SessionStatus';
import { useStopSession } from '../sessions/stop';
import { StreamIndicator } from '../sessions/StreamIndicator';
import type { LiveSession } from '../sessions/measured';
import { UsageCell } from '../sessions/UsageCell';
import { useUsage } from '../sessions/usage';
import { firstLivePage } from '../sessions/view';
import { describeSlots } from '../slots';

const NONE: Session[] = [];

export function SessionsPanel(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const polling = usePolling();
  const { ask, dialog } = useStopSession();
  const view = firstLivePage(me?.name ?? '');
  const { data, error, refetch } = useQuery(pageQuery(host, view, polling));
  const usage = useUsage(data?.items ?? NONE);
  return (
    <section aria-labelledby="bai-panel-sessions">
      <header className="bai-panel-head">
        <h2 id="bai-panel-sessions">{t('sessions.title')}</h2>
        <StreamIndicator />
        <IconButton label={t('sessions.new')} onClick={() => host.open('/launch')}>
          <Plus size={18} aria-hidden />
        </IconButton>
      </header>
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {!data && !error ? <Skeleton rows={3} label={t('state.loading')} /> : null}
      {data && !data.items.length ? (
        <EmptyState
          icon={<SquareTerminal size={28} />}
          title={t('sessions.emptyLiveTitle')}
          text={t('sessions.emptyLiveText')}
          action={
            <Button kind="primary" onClick={() => host.open('/launch')}>
              {t('sessions.new')}
            </Button>
          }
        />
      ) : null}
      <ul className="bai-panel-list">
        {data?.items.map(session => (
          <Item key={session.id} session={session} usage={usage[session.id]} onStop={ask} />
        ))}
      </ul>
      <p className="bai-panel-foot">
        <PageLink to="/sessions">{t('sessions.all')}</PageLink>
      </p>
      {dialog}
    </section>
  );
}

interface ItemProps {
  session: Session;
  usage: LiveSession | undefined;
  onStop(session: Session): void;
}

function Item({ session, usage, onStop }: ItemProps): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  return (
    <li className="bai-panel-item">
      <PageLink className="bai-name" to={`/sessions/${session.id}`}>
        {session.name}
      </PageLink>
      <StatusWithReason session={session} />
      <span className="bai-reason">
        {session.image} · {describeSlots(session.slots, t, language)}
      </span>
      {usage ? <UsageCell usage={usage} /> : null}
      <SessionActions session={session} onStop={onStop} />
    </li>
  );
}
