/** What the list of nodes shows of each. */
import type { Agent } from '@backendai/api';
import { TriangleAlert } from 'lucide-react';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Badge } from '../kit/Badge';
import { RelativeTime } from '../kit/RelativeTime';
import type { ListColumn } from '../lists';
import { PageLink } from '../PageLink';
import {
  AgentBadges,
  AgentMeters,
  AgentNotes,
  labelsOf,
  useApart,
  useTier,
  useUse
} from './AgentParts';

type Text = (agent: Agent) => string;

export function useAgentColumns(): ListColumn<Agent>[] {
  const { t } = useTranslation();
  const { language } = useHost();
  const use = useUse();
  const tier = useTier();
  const apart = useApart();
  return useMemo<ListColumn<Agent>[]>(() => {
    const told = (key: string, title: string, text: Text): ListColumn<Agent> => ({
      key,
      title,
      cell: agent => text(agent) || '–',
      csv: text
    });
    return [
      {
        key: 'name',
        title: t('nodes.name'),
        head: true,
        sort: 'name',
        cell: agent => (
          <PageLink className="bai-name" to={`/nodes/${agent.id}`}>
            {agent.name}
          </PageLink>
        ),
        csv: agent => agent.name
      },
      {
        key: 'status',
        title: t('nodes.status'),
        sort: 'status',
        cell: agent => <State agent={agent} />,
        csv: ({ status, schedulable }) =>
          schedulable ? status : `${status}; ${t('nodes.closed')}`
      },
      {
        ...told('resource_group', t('nodes.group'), agent => agent.resource_group ?? ''),
        sort: 'resource_group'
      },
      {
        key: 'use',
        title: t('nodes.use'),
        cell: agent => <AgentMeters agent={agent} />,
        csv: use
      },
      {
        ...told('sessions', t('sessions.title'), agent => String(agent.sessions ?? 0)),
        align: 'end'
      },
      told('version', t('nodes.release'), agent => agent.version),
      {
        key: 'last_seen_at',
        title: t('nodes.seen'),
        sort: 'last_seen_at',
        cell: ({ last_seen_at: seen }) =>
          seen ? <RelativeTime iso={seen} language={language} /> : '–',
        csv: agent => agent.last_seen_at ?? ''
      },
      {
        ...told('architecture', t('nodes.architecture'), agent => agent.architecture),
        sort: 'architecture',
        hidden: true
      },
      { ...told('isolation', t('nodes.isolation'), tier), hidden: true },
      {
        ...told('runtime', t('nodes.runtime'), agent => agent.isolation.runtime),
        hidden: true
      },
      { ...told('labels', t('nodes.labels'), labelsOf), hidden: true },
      {
        ...told('limits', t('nodes.limits'), agent => apart(agent.isolation.limits)),
        hidden: true
      },
      {
        ...told('network', t('nodes.network'), agent => apart(agent.isolation.network)),
        hidden: true
      },
      {
        key: 'notes',
        title: t('nodes.notes'),
        hidden: true,
        cell: agent => <AgentNotes agent={agent} />,
        csv: agent => (agent.isolation.notes ?? []).join('; ')
      }
    ];
  }, [t, language, use, tier, apart]);
}

/** How a node is, and what about it somebody ought to look at. */
function State({ agent }: { agent: Agent }): JSX.Element {
  const { t } = useTranslation();
  const { drain, unknown_containers: unknown } = agent;
  return (
    <>
      <AgentBadges agent={agent} />
      {drain ? (
        <p className="bai-reason">
          {t('nodes.drainedBy', { by: drain.by })} {drain.reason}
        </p>
      ) : null}
      {unknown?.length ? (
        <Badge tone="warning" icon={<TriangleAlert size={14} />}>
          {t('nodes.unknown', { names: unknown.join(', ') })}
        </Badge>
      ) : null}
    </>
  );
}
