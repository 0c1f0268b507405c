import type { Agent } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { PageLink } from '../PageLink';
import { agentsQuery } from '../queries';
import { shareOf } from '../sessions/measured';
import { percent } from '../sessions/UsageCell';
import { usePolling } from '../stream';

interface Cell {
  key: string;
  name: string;
  /** Of 0 to 1; null where nobody knows. */
  share: number | null;
}

/** One cell for each device of a node; for its processors, if it has none. */
export function cellsOf({ usage, name }: Agent): Cell[] {
  const devices = (usage?.devices ?? []).map(each => ({
    key: `${each.name} ${each.slices.join()}`,
    name: [each.model, each.name].filter(Boolean).join(' '),
    share: each.utilization
  }));
  return devices.length
    ? devices
    : [{ key: 'cpu', name: `${name} CPU`, share: shareOf(usage?.cpu, usage?.cpu_limit) }];
}

/** Every device of the site, by how busy it is; each leads to its node. */
export function HeatStrip(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery(agentsQuery(host, usePolling()));
  return (
    <section className="bai-card" aria-labelledby="bai-heat">
      <h2 id="bai-heat">{t('dashboard.nodes')}</h2>
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {!data && !error ? <Skeleton rows={1} label={t('state.loading')} /> : null}
      {data?.length === 0 ? <p className="bai-help">{t('dashboard.noNodes')}</p> : null}
      <ul className="bai-heat">
        {data?.map(agent => (
          <li key={agent.id}>
            <PageLink to={`/nodes/${agent.id}`} className="bai-heat-name">
              {agent.name}
            </PageLink>
            <ul aria-label={t('dashboard.devicesOf', { name: agent.name })}>
              {cellsOf(agent).map(cell => (
                <li key={cell.key}>
                  <HeatCell agent={agent} cell={cell} />
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
      {data?.length ? <Legend /> : null}
    </section>
  );
}

const STEPS = 5;

/** 0 where nobody knows, else 1 to 5: idle to busy. */
function heat(share: number | null): number {
  return share === null ? 0 : Math.min(STEPS, 1 + Math.floor(share * STEPS));
}

function HeatCell({ agent, cell }: { agent: Agent; cell: Cell }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const share = cell.share === null ? t('dashboard.unknown') : percent(cell.share, language);
  return (
    <PageLink
      to={`/nodes/${agent.id}`}
      className={`bai-heat-cell bai-heat-${heat(cell.share)}`}
    >
      <span className="bai-heat-text">
        <span className="bai-hidden">{`${cell.name}: `}</span>
        {cell.share === null ? '–' : Math.round(cell.share * 100)}
        <span className="bai-hidden">{cell.share === null ? ` ${share}` : '%'}</span>
      </span>
      <span className="bai-heat-tip" aria-hidden>
        {cell.name} · {share}
      </span>
    </PageLink>
  );
}

function Legend(): JSX.Element {
  const { t } = useTranslation();
  return (
    <p className="bai-heat-legend" aria-hidden>
      {t('dashboard.idle')}
      {Array.from({ length: STEPS }, (_, step) => (
        <span key={step} className={`bai-heat-key bai-heat-${step + 1}`} />
      ))}
      {t('dashboard.busy')}
    </p>
  );
}
