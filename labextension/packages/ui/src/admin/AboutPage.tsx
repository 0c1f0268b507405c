/** What runs here: versions, parts, and where to read on. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { DataTable } from '../kit/DataTable';
import { Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { ask } from '../nouns/client';
import { isSuperadmin } from '../nouns/roles';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { agentsQuery, meQuery } from '../queries';
import { usePolling } from '../stream';
import { COMPONENTS } from './components';

interface Spec {
  info: { title: string; version: string; description?: string };
  paths: Record<string, Record<string, unknown>>;
}

export default function AboutPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const version = useQuery({
    queryKey: ['version'],
    queryFn: ({ signal }) => ask<Schemas['Version']>(host, 'GET', '/api/', { signal }),
    enabled: host.visible
  });
  const spec = useQuery({
    queryKey: ['spec'],
    queryFn: ({ signal }) => ask<Spec>(host, 'GET', '/api/openapi.json', { signal }),
    staleTime: Infinity,
    enabled: host.visible
  });
  const routes = Object.values(spec.data?.paths ?? {});
  const calls = routes.reduce((sum, methods) => sum + Object.keys(methods).length, 0);
  return (
    <>
      <PageHeading title={t('about.title')} />
      <p className="bai-lead">{t('about.about')}</p>
      {version.error ? (
        <LoadError error={version.error} stale={false} onRetry={() => void version.refetch()} />
      ) : null}
      <div className="bai-sections">
        <section className="bai-card">
          <h2>{t('about.service')}</h2>
          {version.data ? (
            <dl className="bai-facts">
              <div>
                <dt>{t('app.name')}</dt>
                <dd>{version.data.version}</dd>
              </div>
              <div>
                <dt>{t('about.api')}</dt>
                <dd>
                  {calls ? t('about.calls', { routes: routes.length, calls }) : '–'}{' '}
                  <a href={host.addressOf('/api/openapi.json')}>{t('about.spec')}</a>
                </dd>
              </div>
              <div>
                <dt>{t('about.licence')}</dt>
                <dd>BSD-3-Clause</dd>
              </div>
            </dl>
          ) : (
            <Skeleton rows={2} label={t('state.loading')} />
          )}
        </section>
        {me && isSuperadmin(me) ? <Nodes /> : null}
      </div>
      <section className="bai-card bai-panel-card">
        <h2>{t('about.components')}</h2>
        <p className="bai-help">{t('about.componentsText')}</p>
        <DataTable
          caption={t('about.components')}
          rows={[...COMPONENTS]}
          rowKey={each => each.name}
          columns={[
            { key: 'name', title: t('fields.any.name'), head: true, cell: each => each.name },
            { key: 'version', title: t('about.version'), cell: each => each.version },
            { key: 'licence', title: t('about.licence'), cell: each => each.licence }
          ]}
        />
      </section>
    </>
  );
}

function Nodes(): JSX.Element {
  const { t } = useTranslation();
  const { data } = useQuery(agentsQuery(useHost(), usePolling()));
  return (
    <section className="bai-card">
      <h2>{t('nodes.title')}</h2>
      {data ? (
        <dl className="bai-facts">
          {data.map(agent => (
            <div key={agent.id}>
              <dt>
                <PageLink to={`/nodes/${agent.id}`}>{agent.name}</PageLink>
              </dt>
              <dd>
                {t('nodes.version', {
                  version: agent.version,
                  architecture: agent.architecture
                })}
                {' · '}
                {agent.isolation.runtime}
              </dd>
            </div>
          ))}
        </dl>
      ) : (
        <Skeleton rows={2} label={t('state.loading')} />
      )}
    </section>
  );
}
