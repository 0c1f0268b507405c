/** The nodes of a resource group. */
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { PageLink } from '../../PageLink';
import { agentsQuery } from '../../queries';
import { usePolling } from '../../stream';
import type { Shown } from '../noun';
import { Amounts } from '../Value';

export function GroupNodes({ row }: { row: Shown<'resource-groups'> }): JSX.Element {
  const { t } = useTranslation();
  const {
    data: mine,
    error,
    refetch
  } = useQuery(agentsQuery(useHost(), usePolling(), row.name));
  if (!mine && error) {
    return <LoadError error={error} onRetry={() => void refetch()} />;
  }
  if (!mine) {
    return <Skeleton rows={1} label={t('state.loading')} />;
  }
  return mine.length ? (
    <ul className="bai-plain-list">
      {mine.map(agent => (
        <li key={agent.id} className="bai-group-node">
          <PageLink to={`/nodes/${agent.id}`}>{agent.name}</PageLink>
          <Amounts amounts={agent.capacity} />
        </li>
      ))}
    </ul>
  ) : (
    <p className="bai-help">{t('nouns.resource-groups.noNodes')}</p>
  );
}
