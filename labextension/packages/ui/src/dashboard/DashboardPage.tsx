/** How one's work is doing; for those who run the site, how the site is doing as well. */
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { PageHeading } from '../PageHeading';
import { administers, isMonitor, isSuperadmin } from '../pages/page';
import { meQuery, pageQuery, resourcesQuery } from '../queries';
import { usePolling } from '../stream';
import { NewSession } from '../sessions/NewSession';
import { RecentSessions } from '../sessions/RecentSessions';
import { StreamIndicator } from '../sessions/StreamIndicator';
import { EVERYBODY } from '../sessions/view';
import { Counts } from './Counts';
import { HeatStrip } from './HeatStrip';
import { FreeNow, Limits } from './Limits';
import { LiveUse } from './LiveUse';
import { Queues } from './Queues';

/** More than these are not counted one by one. */
const COUNTED = 200;

export function DashboardPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  // Who only looks on has nothing: these see what everybody has.
  const watches = me !== undefined && isMonitor(me);
  const polling = usePolling();
  const resources = useQuery({ ...resourcesQuery(host), refetchInterval: polling });
  const live = useQuery({
    ...pageQuery(
      host,
      {
        status: 'live',
        order: '-created_at',
        owner: watches ? EVERYBODY : (me?.name ?? ''),
        after: '',
        limit: COUNTED
      },
      polling
    ),
    enabled: host.visible && me !== undefined
  });
  const seesNodes = watches || (me !== undefined && isSuperadmin(me));
  const seesQueues = watches || (me !== undefined && administers(me));
  const error = resources.error ?? live.error;
  const retry = (): void => {
    void resources.refetch();
    void live.refetch();
  };
  return (
    <>
      <PageHeading title={t('dashboard.title')} beside={<StreamIndicator />}>
        <NewSession />
      </PageHeading>
      {error ? (
        <LoadError error={error} stale={resources.data !== undefined} onRetry={retry} />
      ) : null}
      {!resources.data && !error ? <Skeleton rows={6} label={t('state.loading')} /> : null}
      <div className="bai-stack">
        {live.data ? (
          <Counts
            sessions={live.data.items}
            more={Boolean(live.data.next)}
            everybody={watches}
          />
        ) : null}
        {resources.data ? (
          <div className="bai-columns">
            {watches ? null : <Limits resources={resources.data} />}
            <FreeNow resources={resources.data} />
          </div>
        ) : null}
        {watches ? null : <LiveUse sessions={live.data?.items ?? []} />}
        {seesNodes ? <HeatStrip /> : null}
        {seesQueues && resources.data ? (
          <Queues groups={resources.data.resource_groups} />
        ) : null}
        <RecentSessions />
      </div>
    </>
  );
}
