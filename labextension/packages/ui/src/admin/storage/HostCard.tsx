/** A storage host: how it is, how full, and what it can. */
import type { Schemas } from '@backendai/api';
import { CircleAlert, CircleCheck, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { showAmount } from '../../amounts';
import { FromService } from '../../FromService';
import { useHost } from '../../host';
import { Badge } from '../../kit/Badge';
import { Meter } from '../../kit/Meter';
import { RelativeTime } from '../../kit/RelativeTime';
import { Default } from '../../nouns/Badges';
import { PageLink } from '../../PageLink';
import { Permissions } from './Permissions';

type StorageHost = Schemas['StorageHost'];

const LOOKS: Record<
  string,
  { tone: 'success' | 'warning' | 'error'; Icon: typeof CircleCheck }
> = {
  ok: { tone: 'success', Icon: CircleCheck },
  starting: { tone: 'warning', Icon: TriangleAlert },
  slow: { tone: 'warning', Icon: TriangleAlert }
};
const BROKEN = { tone: 'error', Icon: CircleAlert } as const;

export function HostCard({ host }: { host: StorageHost }): JSX.Element {
  const heading = `host-${host.name}`;
  return (
    <article className="bai-card bai-storage-host" aria-labelledby={heading}>
      <div className="bai-card-head">
        <h2 id={heading}>
          <PageLink to={`/admin/storage/${encodeURIComponent(host.name)}`}>
            {host.name}
          </PageLink>
        </h2>
        <HostBadges host={host} />
      </div>
      <HostFacts host={host} />
    </article>
  );
}

export function HostBadges({ host }: { host: StorageHost }): JSX.Element {
  const { t } = useTranslation();
  const { tone, Icon } = LOOKS[host.state] ?? BROKEN;
  return (
    <>
      <Badge tone={tone} icon={<Icon size={14} />}>
        {t(`storage.states.${host.state}`, { defaultValue: host.state })}
      </Badge>
      {host.is_default ? <Default /> : null}
    </>
  );
}

/** How it is, how full, and what it can. */
export function HostFacts({ host }: { host: StorageHost }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const { total_bytes: total, free_bytes: free, capabilities = [] } = host;
  const used = typeof total === 'number' && typeof free === 'number' ? total - free : null;
  return (
    <>
      {host.reason ? (
        <p className="bai-reason">
          <FromService text={host.reason} />
          {host.since ? (
            <>
              {' · '}
              <RelativeTime iso={host.since} language={language} />
            </>
          ) : null}
        </p>
      ) : null}
      {used !== null && typeof total === 'number' ? (
        <Meter
          label={t('storage.used')}
          text={t('storage.usedOf', {
            used: showAmount('mem', used, language),
            total: showAmount('mem', total, language)
          })}
          value={used}
          max={total}
        />
      ) : null}
      <dl className="bai-facts bai-facts-compact">
        {capabilities.length ? (
          <div>
            <dt>{t('storage.can')}</dt>
            <dd>
              {capabilities
                .map(each => t(`storage.capabilities.${each}`, { defaultValue: each }))
                .join(', ')}
            </dd>
          </div>
        ) : null}
        <div>
          <dt>{t('storage.youMay')}</dt>
          <dd>
            <Permissions given={host.permissions} />
          </dd>
        </div>
      </dl>
    </>
  );
}
