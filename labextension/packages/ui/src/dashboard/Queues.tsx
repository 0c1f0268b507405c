import { unwrap, type Schemas } from '@backendai/api';
import { useQueries } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { showDuration } from '../durations';
import { FromService } from '../FromService';
import { useHost } from '../host';
import { DataTable } from '../kit/DataTable';
import { Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { PageLink } from '../PageLink';
import { keys } from '../queries';
import { usePolling } from '../stream';

type Entry = Schemas['QueueEntry'] & { group: string };

/** Of each resource group, so many of those who are next. */
const NEXT = 5;

/** Who waits, in the order of the scheduler, and for what. */
export function Queues({ groups }: { groups: readonly string[] }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const polling = usePolling();
  const pages = useQueries({
    queries: groups.map(group => ({
      queryKey: [...keys.queue, group, NEXT],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        unwrap(
          host.api.GET('/api/resource-groups/{reference}/queue', {
            params: { path: { reference: group }, query: { limit: NEXT } },
            signal
          })
        ),
      refetchInterval: polling,
      enabled: host.visible
    }))
  });
  const error = pages.find(page => page.error)?.error;
  const unknown = pages.some(page => !page.data);
  const retry = (): void => pages.forEach(page => void page.refetch());
  const rows: Entry[] = pages.flatMap(({ data }) =>
    (data?.items ?? []).map(entry => ({ ...entry, group: data?.resource_group ?? '' }))
  );
  return (
    <section className="bai-recent" aria-labelledby="bai-queue">
      <div className="bai-section-head">
        <h2 id="bai-queue">{t('dashboard.queue')}</h2>
        <PageLink to="/sessions?all=1&state=PENDING">
          {t('dashboard.everybodyWaiting')}
        </PageLink>
      </div>
      {error ? <LoadError error={error} stale={!unknown} onRetry={retry} /> : null}
      {unknown && !error ? <Skeleton rows={2} label={t('state.loading')} /> : null}
      {!unknown && rows.length === 0 ? (
        <p className="bai-nothing">{t('dashboard.nobodyWaits')}</p>
      ) : null}
      {rows.length ? (
        <div className="bai-card bai-table-card">
          <DataTable
            caption={t('dashboard.queue')}
            rows={rows}
            rowKey={row => row.id}
            columns={[
              {
                key: 'name',
                title: t('sessions.name'),
                head: true,
                cell: row => (
                  <PageLink className="bai-name" to={`/sessions/${row.id}`}>
                    {row.name}
                  </PageLink>
                )
              },
              {
                key: 'position',
                title: t('dashboard.position'),
                align: 'end',
                cell: row => <span className="bai-number">{row.position}</span>
              },
              ...(groups.length > 1
                ? [
                    {
                      key: 'group',
                      title: t('sessionList.group'),
                      cell: (row: Entry) => row.group
                    }
                  ]
                : []),
              { key: 'owner', title: t('sessions.owner'), cell: row => row.owner },
              {
                key: 'waited',
                title: t('dashboard.waited'),
                align: 'end',
                cell: row => (
                  <span className="bai-number">{showDuration(row.waited, host.language)}</span>
                )
              },
              {
                key: 'reason',
                title: t('dashboard.reason'),
                cell: row => <FromService className="bai-reason" text={row.reason} />
              }
            ]}
          />
        </div>
      ) : null}
    </section>
  );
}
