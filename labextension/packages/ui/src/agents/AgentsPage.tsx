import { ApiError, type Agent } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import {
  CircleAlert,
  CircleCheck,
  CircleOff,
  CirclePause,
  Server,
  TriangleAlert
} from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { parseAmount, showAmount, sortSlots } from '../amounts';
import { useHost } from '../host';
import { Badge } from '../kit/Badge';
import { Meter } from '../kit/Meter';
import { RelativeTime } from '../kit/RelativeTime';
import { Banner, EmptyState, Skeleton } from '../kit/States';
import { Siblings } from '../nouns/Siblings';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { agentsQuery } from '../queries';
import { LoadError } from '../LoadError';
import { slotTitle } from '../slots';
import { usePolling } from '../stream';
import { FromService } from '../FromService';

/** The machines behind the sessions: how full they are, and what keeps users apart. */
export function AgentsPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery(agentsQuery(host, usePolling()));
  const forbidden = error instanceof ApiError && error.status === 403;
  return (
    <>
      <PageHeading title={t('nodes.title')} />
      <Siblings path="/nodes" />
      {forbidden ? (
        <Banner tone="warning" icon={<CircleAlert size={18} />}>
          {t('nodes.forbidden')}
        </Banner>
      ) : null}
      {error && !forbidden ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {!data && !error ? <Skeleton rows={3} label={t('state.loading')} /> : null}
      {data?.length === 0 ? (
        <EmptyState
          icon={<Server size={32} />}
          title={t('nodes.emptyTitle')}
          text={t('nodes.emptyText')}
        />
      ) : null}
      <ul className="bai-nodes" aria-label={t('nodes.caption', { count: data?.length ?? 0 })}>
        {data?.map(agent => (
          <li key={agent.id}>
            <AgentCard agent={agent} />
          </li>
        ))}
      </ul>
    </>
  );
}

const LOOKS = {
  ALIVE: { tone: 'success', Icon: CircleCheck },
  SUSPECT: { tone: 'warning', Icon: TriangleAlert },
  LOST: { tone: 'error', Icon: CircleAlert },
  TERMINATED: { tone: 'neutral', Icon: CircleOff }
} as const;

export function AgentBadges({
  agent
}: {
  agent: Pick<Agent, 'status' | 'schedulable'>;
}): JSX.Element {
  const { t } = useTranslation();
  const { tone, Icon } = LOOKS[agent.status] ?? LOOKS.SUSPECT;
  return (
    <>
      <Badge tone={tone} icon={<Icon size={14} />}>
        {t(`nodes.${agent.status}`, { defaultValue: agent.status })}
      </Badge>
      {agent.schedulable ? null : (
        <Badge tone="neutral" icon={<CirclePause size={14} />}>
          {t('nodes.closed')}
        </Badge>
      )}
    </>
  );
}

export function AgentSeen({ agent }: { agent: Agent }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const { version, architecture, last_seen_at: seen } = agent;
  return (
    <p className="bai-help">
      {t('nodes.version', { version, architecture })}
      {seen ? (
        <>
          {' · '}
          {t('nodes.seen')} <RelativeTime iso={seen} language={language} />
        </>
      ) : null}
    </p>
  );
}

function AgentCard({ agent }: { agent: Agent }): JSX.Element {
  const { t } = useTranslation();
  const { unknown_containers: unknown, drain } = agent;
  const heading = `node-${agent.id}`;
  return (
    <article className="bai-card" aria-labelledby={heading}>
      <div className="bai-card-head">
        <h2 id={heading}>
          <PageLink to={`/nodes/${agent.id}`}>{agent.name}</PageLink>
        </h2>
        <AgentBadges agent={agent} />
      </div>
      <AgentSeen agent={agent} />
      {drain ? (
        <p className="bai-reason">
          {t('nodes.drainedBy', { by: drain.by })} {drain.reason}
        </p>
      ) : null}
      <AgentMeters agent={agent} />
      <AgentIsolation agent={agent} />
      {unknown?.length ? (
        <Banner tone="warning" icon={<TriangleAlert size={18} />}>
          {t('nodes.unknown', { names: unknown.join(', ') })}
        </Banner>
      ) : null}
    </article>
  );
}

export function AgentMeters({
  agent
}: {
  agent: Pick<Agent, 'capacity' | 'used'>;
}): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  return (
    <div className="bai-meters">
      {sortSlots(Object.keys(agent.capacity)).map(slot => {
        const total = parseAmount(slot, agent.capacity[slot] ?? '') ?? 0;
        const used = parseAmount(slot, agent.used[slot] ?? '0') ?? 0;
        const text = t('nodes.usedOf', {
          used: showAmount(slot, used, language),
          total: showAmount(slot, total, language)
        });
        return (
          <Meter key={slot} label={slotTitle(slot, t)} text={text} value={used} max={total} />
        );
      })}
    </div>
  );
}

export function AgentIsolation({ agent }: { agent: Agent }): JSX.Element {
  const { t } = useTranslation();
  const { tier, runtime, limits, network, multi_user: shared, notes = [] } = agent.isolation;
  const facts = [
    [t('nodes.isolation'), `${tier} · ${t(shared ? 'nodes.multiUser' : 'nodes.singleUser')}`],
    [t('nodes.runtime'), runtime],
    [t('nodes.limits'), limits],
    [t('nodes.network'), network]
  ];
  const labels = Object.entries(agent.labels).map(([name, value]) => `${name}=${value}`);
  if (labels.length) {
    facts.push([t('nodes.labels'), labels.join(', ')]);
  }
  return (
    <>
      <dl className="bai-facts bai-facts-compact">
        {facts.map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {notes.length ? (
        <ul className="bai-notes" aria-label={t('nodes.notes')}>
          {notes.map(note => (
            <li key={note}>
              <TriangleAlert size={14} aria-hidden /> <FromService text={note} />
            </li>
          ))}
        </ul>
      ) : null}
    </>
  );
}
