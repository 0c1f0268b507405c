/** The nodes that one's own sessions can run on, and how full they are. */
import type { Schemas } from '@backendai/api';
import { unwrap } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { Server } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { NounList, type ListColumn, type ListOf } from '../lists';
import { PageHeading } from '../PageHeading';
import { resourcesQuery } from '../queries';
import { AgentBadges, AgentMeters, useUse } from './AgentParts';

type Summary = Schemas['AgentSummary'];
const STATUSES = ['ALIVE', 'SUSPECT', 'LOST'] as const;

export default function AgentSummaryPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const groups = useQuery(resourcesQuery(host)).data?.resource_groups ?? [];
  const list: ListOf<Summary> = {
    name: 'agent-summaries',
    caption: t('nodes.title'),
    columns: useColumns(),
    filters: [
      {
        key: 'resource_group',
        title: t('nodes.group'),
        options: groups.map(name => ({ value: name, text: name }))
      },
      {
        key: 'status',
        title: t('nodes.status'),
        options: STATUSES.map(value => ({ value, text: t(`nodes.${value}`) }))
      },
      {
        key: 'architecture',
        title: t('nodes.architecture'),
        suggestions: ['x86_64', 'aarch64']
      }
    ],
    searches: t('nodes.searches'),
    order: 'name',
    followed: true,
    load: async (view, signal) => {
      const query = {
        ...view.filters,
        limit: view.limit,
        order: view.order,
        ...(view.search ? { search: view.search } : {}),
        ...(view.after ? { after: view.after } : {})
      };
      const page = await unwrap(
        host.api.GET('/api/agent-summaries', { params: { query }, signal })
      );
      return { items: page.items, next: page.next ?? null };
    },
    rowKey: row => `${row.resource_group}/${row.name}`,
    rowName: row => row.name,
    dimmed: row => row.status !== 'ALIVE',
    empty: {
      icon: <Server size={32} />,
      title: t('nodes.emptyTitle'),
      text: t('nodes.summaryEmpty')
    }
  };
  return (
    <>
      <PageHeading title={t('nodes.title')} />
      <p className="bai-lead">{t('nodes.summaryAbout')}</p>
      <NounList list={list} />
    </>
  );
}

function useColumns(): ListColumn<Summary>[] {
  const { t } = useTranslation();
  const use = useUse();
  return [
    {
      key: 'name',
      title: t('nodes.name'),
      head: true,
      sort: 'name',
      cell: row => <span className="bai-name">{row.name}</span>,
      csv: row => row.name
    },
    {
      key: 'status',
      title: t('nodes.status'),
      cell: row => <AgentBadges agent={row} />,
      csv: row => row.status
    },
    {
      key: 'resource_group',
      title: t('nodes.group'),
      cell: row => row.resource_group,
      csv: row => row.resource_group
    },
    {
      key: 'architecture',
      title: t('nodes.architecture'),
      cell: row => row.architecture,
      csv: row => row.architecture
    },
    {
      key: 'use',
      title: t('nodes.use'),
      cell: row => <AgentMeters agent={row} />,
      csv: use
    }
  ];
}
