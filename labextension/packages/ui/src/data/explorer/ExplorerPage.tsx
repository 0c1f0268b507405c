/** One folder, and what is in it. */
import { ApiError } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { ArrowLeft, FolderX } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Badge } from '../../kit/Badge';
import { EmptyState, Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { PageHeading } from '../../PageHeading';
import { PageLink } from '../../PageLink';
import type { PageProps } from '../../pages/page';
import { usePolling } from '../../stream';
import { folderQuery } from '../queries';
import { Explorer } from './Explorer';

export function ExplorerPage({ params }: PageProps): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const polling = usePolling();
  const id = params.id ?? '';
  const { data: folder, error, refetch } = useQuery(folderQuery(host, id, polling));
  const missing = error instanceof ApiError && error.status === 404;
  const title = folder?.name ?? t(missing ? 'files.missing' : 'state.loading');
  return (
    <>
      <p className="bai-back">
        <ArrowLeft size={16} aria-hidden />
        <PageLink to="/data">{t('files.back')}</PageLink>
      </p>
      <PageHeading
        title={title}
        beside={
          folder?.access ? (
            <Badge tone="neutral" icon={null}>
              {t(`data.permissions.${folder.access}`)}
            </Badge>
          ) : null
        }
      />
      {missing ? (
        <EmptyState
          icon={<FolderX size={32} />}
          title={t('files.missing')}
          text={t('files.missingText')}
          action={<PageLink to="/data">{t('files.back')}</PageLink>}
        />
      ) : null}
      {error && !missing ? (
        <LoadError error={error} stale={Boolean(folder)} onRetry={() => void refetch()} />
      ) : null}
      {!folder && !error ? <Skeleton rows={5} label={t('state.loading')} /> : null}
      {folder && !missing ? <Explorer folder={folder} /> : null}
    </>
  );
}
