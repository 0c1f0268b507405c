/** Storage hosts: how they are, how full, and how much everybody may hold on them. */
import { useQuery } from '@tanstack/react-query';
import { HardDrive } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { hostsQuery } from '../../data/queries';
import { useHost } from '../../host';
import { EmptyState, Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { Siblings } from '../../nouns/Siblings';
import { PageHeading } from '../../PageHeading';
import { usePolling } from '../../stream';
import { HostCard } from './HostCard';
import { Quotas } from './Quotas';

export default function StoragePage(): JSX.Element {
  const { t } = useTranslation();
  const polling = usePolling();
  const { data, error, refetch } = useQuery({
    ...hostsQuery(useHost()),
    refetchInterval: polling
  });
  return (
    <>
      <PageHeading title={t('storage.title')} />
      <Siblings path="/admin/storage" />
      <p className="bai-lead">{t('storage.about')}</p>
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {!data && !error ? <Skeleton rows={2} label={t('state.loading')} /> : null}
      {data?.length === 0 ? (
        <EmptyState
          icon={<HardDrive size={32} />}
          title={t('storage.emptyTitle')}
          text={t('storage.emptyText')}
        />
      ) : null}
      <ul className="bai-nodes" aria-label={t('storage.title')}>
        {data?.map(each => (
          <li key={each.name}>
            <HostCard host={each} />
          </li>
        ))}
      </ul>
      <h2 className="bai-part">{t('storage.quotas')}</h2>
      <Quotas hosts={data?.map(each => each.name) ?? []} />
    </>
  );
}
