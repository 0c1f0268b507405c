/** The machines behind the sessions: how full they are, and what keeps users apart. */
import type { Agent, Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { CircleArrowDown, EllipsisVertical, Server, Undo2 } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { MenuButton } from '../kit/Menu';
import { listKey, NounList, type Filter, type ListOf } from '../lists';
import { choicesQuery } from '../nouns/choices';
import { ask } from '../nouns/client';
import { isSuperadmin } from '../nouns/roles';
import { Siblings } from '../nouns/Siblings';
import { PageHeading } from '../PageHeading';
import { meQuery } from '../queries';
import { useAgentColumns } from './columns';
import { useDrain, type Draining } from './useDrain';

const STATUSES = ['ALIVE', 'SUSPECT', 'LOST', 'TERMINATED'] as const;

export function AgentsPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const draining = useDrain();
  const list: ListOf<Agent> = {
    name: 'agents',
    caption: t('nodes.title'),
    columns: useAgentColumns(),
    filters: useFilters(),
    searches: t('nodes.searches'),
    order: 'name',
    queryKey: view => [...listKey('agents'), view],
    followed: true,
    load: async (view, signal) => {
      const { search, after, limit, order } = view;
      const query = {
        limit,
        order,
        ...view.filters,
        ...(search ? { search } : {}),
        ...(after ? { after } : {})
      };
      const page = await ask<Schemas['AgentPage']>(host, 'GET', '/api/agents', {
        params: { query },
        signal
      });
      return { items: page.items, next: page.next ?? null };
    },
    rowKey: agent => agent.id,
    rowName: agent => agent.name,
    ...(me && isSuperadmin(me)
      ? { actions: (agent: Agent) => <RowActions agent={agent} draining={draining} /> }
      : {}),
    dimmed: agent => agent.status !== 'ALIVE',
    empty: {
      icon: <Server size={32} />,
      title: t('nodes.emptyTitle'),
      text: t('nodes.emptyText')
    }
  };
  return (
    <>
      <PageHeading title={t('nodes.title')} />
      <Siblings path="/nodes" />
      <NounList list={list} />
      {draining.dialog}
    </>
  );
}

function useFilters(): Filter[] {
  const { t } = useTranslation();
  const groups = useQuery(choicesQuery(useHost(), 'resource-groups', '')).data?.items ?? [];
  return [
    {
      key: 'resource_group',
      title: t('nodes.group'),
      suggestions: groups.map(({ name }) => String(name))
    },
    {
      key: 'status',
      title: t('nodes.status'),
      options: STATUSES.map(value => ({ value, text: t(`nodes.${value}`) }))
    },
    {
      key: 'schedulable',
      title: t('nodes.takes'),
      options: [
        { value: 'true', text: t('nodes.schedulable') },
        { value: 'false', text: t('nodes.closed') }
      ]
    },
    {
      key: 'runtime',
      title: t('nodes.runtime'),
      suggestions: ['docker', 'process']
    },
    {
      key: 'architecture',
      title: t('nodes.architecture'),
      suggestions: ['x86_64', 'aarch64']
    }
  ];
}

function RowActions({ agent, draining }: { agent: Agent; draining: Draining }): JSX.Element {
  const { t } = useTranslation();
  return (
    <MenuButton
      label={t('form.actionsFor', { name: agent.name })}
      icon={<EllipsisVertical size={18} aria-hidden />}
      entries={[
        agent.drain
          ? {
              key: 'undrain',
              text: t('nodes.undrain'),
              icon: <Undo2 size={16} aria-hidden />,
              onSelect: () => void draining.undrain(agent)
            }
          : {
              key: 'drain',
              text: t('nodes.drain'),
              icon: <CircleArrowDown size={16} aria-hidden />,
              onSelect: () => draining.drain(agent)
            }
      ]}
    />
  );
}
