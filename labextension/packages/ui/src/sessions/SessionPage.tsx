import { ApiError, type ShownSession } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { ArrowLeft, Ellipsis } from 'lucide-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { parseAmount, showAmount } from '../amounts';
import { FromService } from '../FromService';
import { useHost } from '../host';
import { MenuButton } from '../kit/Menu';
import { RelativeTime } from '../kit/RelativeTime';
import { Skeleton } from '../kit/States';
import { Tabs } from '../kit/Tabs';
import { LoadError } from '../LoadError';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { administers, type PageProps } from '../pages/page';
import { historyQuery, meQuery, sessionQuery } from '../queries';
import { showDuration } from '../durations';
import { describeSlots } from '../slots';
import { exactly } from '../times';
import { Attempts } from './Attempts';
import { Containers, Devices } from './Containers';
import { Ending } from './Ending';
import { usePolling, type Polling } from '../stream';
import { Log } from './Log';
import { Mounts } from './Mounts';
import { NodeFact } from './NodeFact';
import { SessionActions } from './SessionTable';
import { SessionBadge, StatusWithReason } from './SessionStatus';
import { isEnded } from './status';
import { useStopSession } from './stop';
import { Timeline } from './Timeline';
import { UsageCharts } from './UsageCharts';
import { useVerbs } from './useVerbs';
import { Waiting } from './Waiting';
import { useWhy } from './why';

const TABS = ['overview', 'log', 'usage', 'attempts'] as const;
type TabKey = (typeof TABS)[number];

/** One session: what it is, how it is, and everything that happened to it. */
export function SessionPage({ params }: PageProps): JSX.Element {
  const id = params.id ?? '';
  const { t } = useTranslation();
  const host = useHost();
  const polling = usePolling();
  const me = useQuery(meQuery(host)).data;
  const { data, error, refetch } = useQuery(sessionQuery(host, id, polling));
  const { ask, dialog } = useStopSession();
  const verbs = useVerbs({ session: data, administers: me !== undefined && administers(me) });
  const missing = error instanceof ApiError && [403, 404].includes(error.status);
  return (
    <>
      <p className="bai-back">
        <ArrowLeft size={16} aria-hidden />
        <PageLink to="/sessions">{t('session.back')}</PageLink>
      </p>
      <PageHeading title={data?.name ?? t(error ? 'sessions.title' : 'state.loading')}>
        {data ? (
          <>
            <SessionActions session={data} onStop={ask} />
            <MenuButton
              label={t('verbs.more')}
              icon={<Ellipsis size={18} aria-hidden />}
              entries={verbs.entries}
            />
          </>
        ) : null}
      </PageHeading>
      {missing ? <p className="bai-nothing">{t('session.missing')}</p> : null}
      {error && !missing ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {data ? <Parts session={data} polling={polling} /> : null}
      {!data && !error ? <Skeleton rows={6} label={t('state.loading')} /> : null}
      {dialog}
      {verbs.dialogs}
    </>
  );
}

/** The parts of the page; the address says which of them is shown. */
function Parts({ session, polling }: { session: ShownSession; polling: Polling }): JSX.Element {
  const { t } = useTranslation();
  const [address, setAddress] = useAddress();
  const wanted = address.get('tab');
  const tab = TABS.find(each => each === wanted) ?? 'overview';
  const choose = (next: TabKey): void =>
    setAddress(
      old => {
        const changed = new URLSearchParams(old);
        changed.delete('tab');
        if (next !== 'overview') {
          changed.set('tab', next);
        }
        return changed;
      },
      { replace: true }
    );
  return (
    <>
      <Ending session={session} />
      <Tabs
        label={t('sessionPage.parts')}
        value={tab}
        onChange={choose}
        tabs={TABS.map(key => ({ key, text: t(`sessionPage.tab.${key}`) }))}
      >
        {tab === 'overview' ? <Overview session={session} polling={polling} /> : null}
        {tab === 'log' ? <Log session={session} /> : null}
        {tab === 'usage' ? <UsageCharts session={session} /> : null}
        {tab === 'attempts' ? <Attempts session={session} /> : null}
      </Tabs>
    </>
  );
}

function Overview({
  session,
  polling
}: {
  session: ShownSession;
  polling: Polling;
}): JSX.Element {
  return (
    <div className="bai-stack">
      <WhyItWaits session={session} />
      <Timeline session={session} />
      <div className="bai-columns">
        <Facts session={session} />
        <History id={session.id} polling={polling} />
      </div>
      <Mounts session={session} />
      {session.cluster_size > 1 ? <Containers session={session} /> : null}
    </div>
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
    [
      t('sessions.node'),
      session.agent && !isEnded(session.status) ? (
        <NodeFact key="node" name={session.agent} />
      ) : (
        session.agent
      )
    ],
    [
      t('session.devices'),
      held.length ? <Devices key="devices" held={held} language={language} /> : null
    ],
    [t('sessions.owner'), session.owner],
    [t('session.project'), session.project],
    [t('sessionList.group'), session.resource_group],
    [t('sessionList.type'), t(`sessionType.${session.type}`)],
    [t('sessionList.priority'), session.status === 'PENDING' ? String(session.priority) : null],
    [t('sessionPage.tag'), session.tag],
    [t('sessionPage.startsAt'), time(session.starts_at)],
    [
      t('sessionPage.attempts'),
      session.max_attempts > 1
        ? t('sessionPage.attemptsOf', { count: session.attempts, most: session.max_attempts })
        : null
    ],
    [
      t('sessionPage.timeout'),
      session.batch_timeout ? showDuration(session.batch_timeout, language) : null
    ],
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

function History({ id, polling }: { id: string; polling: Polling }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery(historyQuery(host, id, polling));
  return (
    <section className="bai-card" aria-labelledby="history">
      <h2 id="history">{t('session.history')}</h2>
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {!data && !error ? <Skeleton rows={3} label={t('state.loading')} /> : null}
      {data?.length === 0 ? <p className="bai-nothing">{t('session.historyEmpty')}</p> : null}
      <ol className="bai-history">
        {data?.map(event => (
          <li key={event.seq}>
            <time dateTime={event.at}>{exactly(event.at, host.language)}</time>
            {event.text ? (
              <FromService text={event.text} />
            ) : (
              <span>{t(`status.${event.status}`, { defaultValue: event.kind })}</span>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
