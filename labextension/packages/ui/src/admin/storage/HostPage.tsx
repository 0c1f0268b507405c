/** One storage host: who may do what on it, and how much everybody may hold there. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { ArrowLeft } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { hostsQuery } from '../../data/queries';
import { useHost } from '../../host';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { PageHeading } from '../../PageHeading';
import { PageLink } from '../../PageLink';
import { MissingPage } from '../../pages/Missing';
import type { PageProps } from '../../pages/page';
import { usePolling } from '../../stream';
import { Grants } from './Grants';
import { HostBadges, HostFacts } from './HostCard';
import { Quotas } from './Quotas';

export default function HostPage({ params }: PageProps): JSX.Element {
  const { t } = useTranslation();
  const polling = usePolling();
  const { data, error, refetch } = useQuery({
    ...hostsQuery(useHost()),
    refetchInterval: polling
  });
  const found = data?.find(each => each.name === params.name);
  if (data && !found) {
    return <MissingPage />;
  }
  return (
    <>
      <p className="bai-back">
        <ArrowLeft size={16} aria-hidden />
        <PageLink to="/admin/storage">{t('storage.title')}</PageLink>
      </p>
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {!data && !error ? <Skeleton rows={4} label={t('state.loading')} /> : null}
      {found ? <Shown host={found} /> : null}
    </>
  );
}

function Shown({ host }: { host: Schemas['StorageHost'] }): JSX.Element {
  const { t } = useTranslation();
  return (
    <>
      <PageHeading title={host.name} beside={<HostBadges host={host} />} />
      <div className="bai-card bai-storage-host">
        <HostFacts host={host} />
      </div>
      <h2 className="bai-part">{t('storage.grants')}</h2>
      <p className="bai-lead">{t('storage.grantsHelp')}</p>
      <Grants name={host.name} />
      <h2 className="bai-part">{t('storage.quotas')}</h2>
      <Quotas hosts={[host.name]} only={host.name} />
    </>
  );
}
