import { ApiError, type ShownSession } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { ArrowLeft } from 'lucide-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { parseAmount, showAmount } from '../amounts';
import { useHost } from '../host';
import { RelativeTime } from '../kit/RelativeTime';
import { Skeleton } from '../kit/States';
import { PageHeading } from '../PageHeading';
import { historyQuery, sessionQuery } from '../queries';
import { describeSlots } from '../slots';
import { exactly } from '../times';
import { Containers, Devices } from './Containers';
import { useStreamState } from './live';
import { Mounts } from './Mounts';
import { LoadError } from './SessionList';
import { SessionActions } from './SessionTable';
import { SessionBadge, StatusWithReason } from './SessionStatus';
import { useStopSession } from './stop';
import { Waiting } from './Waiting';
import { useWhy } from './why';

/** One session: what it is, how it is, and everything that happened to it. */
export function SessionPage({ id, back }: { id: string; back: ReactNode }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const polling = useStreamState() !== 'live';
  const { data, error, refetch } = useQuery(sessionQuery(host, id, polling));
  const { ask, dialog } = useStopSession();
  const missing = error instanceof ApiError && [403, 404].includes(error.status);
  return (
    <>
      <p className="bai-back">
        <ArrowLeft size={16} aria-hidden /> {back}
      </p>
      <PageHeading title={data?.name ?? t('sessions.title')}>
        {data ? <SessionActions session={data} onStop={ask} /> : null}
      </PageHeading>
      {missing ? <p className="bai-nothing">{t('session.missing')}</p> : null}
      {error && !missing ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {data ? (
        <div className="bai-stack">
          <WhyItWaits session={data} />
          <div className="bai-columns">
            <Facts session={data} />
            <History id={id} polling={polling} />
          </div>
          <Mounts session={data} />
          {data.cluster_size > 1 ? <Containers session={data} /> : null}
        </div>
      ) : null}
      {!data && !error ? <Skeleton rows={6} label={t('state.loading')} /> : null}
      {dialog}
    </>
  );
}

function WhyItWaits({ session }: { session: ShownSession }): JSX.Element | null {
  const why = useWhy(session);
  return why ? <Waiting why={why} /> : null;
}

function Facts({ session }: { session: ShownSession }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const time = (iso: string | null | undefined): ReactNode =>
    iso ? <RelativeTime iso={iso} language={language} /> : null;
  const shmem = parseAmount('shmem', session.shmem);
  const size = session.cluster_size;
  const slots = describeSlots(session.slots, t, language);
  // Of several containers, each tells its own.
  const held = size > 1 ? [] : (session.containers ?? []).flatMap(each => each.devices);
  const why = useWhy(session);
  const facts: [string, ReactNode][] = [
    [
      t('sessions.status'),
      why ? (
        <SessionBadge key="status" session={session} />
      ) : (
        <StatusWithReason key="status" session={session} />
      )
    ],
    [t('sessions.environment'), session.image],
    [t('sessions.resources'), size > 1 ? t('session.each', { slots, count: size }) : slots],
    [t('session.shmem'), shmem === null ? session.shmem : showAmount('shmem', shmem, language)],
    [t('sessions.node'), session.agent],
    [
      t('session.devices'),
      held.length ? <Devices key="devices" held={held} language={language} /> : null
    ],
    [t('sessions.owner'), session.owner],
    [t('session.project'), session.project],
    [t('sessions.created'), time(session.created_at)],
    [t('sessions.started'), time(session.started_at)],
    [t('session.ended'), time(session.ended_at)],
    [
      t('session.madeRoom'),
      session.preemptions ? t('session.times', { count: session.preemptions }) : null
    ],
    [t('session.exitCode'), session.exit_code?.toString()],
    [t('session.id'), <code key="id">{session.id}</code>]
  ];
  return (
    <section className="bai-card" aria-labelledby="facts">
      <h2 id="facts">{t('session.facts')}</h2>
      <dl className="bai-facts">
        {facts
          .filter(([, value]) => value)
          .map(([title, value]) => (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </section>
  );
}

function History({ id, polling }: { id: string; polling: boolean }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery(historyQuery(host, id, polling));
  return (
    <section className="bai-card" aria-labelledby="history">
      <h2 id="history">{t('session.history')}</h2>
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {data?.length === 0 ? <p className="bai-nothing">{t('session.historyEmpty')}</p> : null}
      <ol className="bai-history">
        {data?.map(event => (
          <li key={event.seq}>
            <time dateTime={event.at}>{exactly(event.at, host.language)}</time>
            <span>
              {event.text || t(`status.${event.status}`, { defaultValue: event.kind })}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
