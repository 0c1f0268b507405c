/** How much one keeps, and may keep: folders, and bytes on each host. */
import { unwrap } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { CircleAlert, FolderOpen, HardDrive } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { number, showAmount } from '../../amounts';
import { useHost, type Host } from '../../host';
import { Badge } from '../../kit/Badge';
import { Meter } from '../../kit/Meter';
import { useLooksOnly } from '../../pages/useLooksOnly';
import { quotaQuery } from '../queries';
import type { QuotaScope } from '../types';
import { useRights } from '../useAsker';
import { FromService } from '../../FromService';

/** How many folders one's own policy allows; null where there is no limit, or nobody says. */
async function askLimit({ api }: Host, name: string): Promise<number | null> {
  const params = { path: { reference: name } };
  const user = await unwrap(api.GET('/api/users/{reference}', { params }));
  const policy = user.resource_policy ?? '';
  const found = await unwrap(
    api.GET('/api/user-policies/{reference}', { params: { path: { reference: policy } } })
  );
  return found.max_vfolder_count > 0 ? found.max_vfolder_count : null;
}

export function StorageStatus(): JSX.Element | null {
  const { t } = useTranslation();
  const host = useHost();
  const { language } = host;
  const { name, projects, hosts } = useRights();
  const { data } = useQuery(quotaQuery(host));
  const looksOnly = useLooksOnly();
  const limit = useQuery({
    queryKey: ['folder-limit', name],
    queryFn: () => askLimit(host, name),
    enabled: name !== '' && !looksOnly,
    retry: false,
    staleTime: 5 * 60_000
  }).data;
  if (!data) {
    return null;
  }
  const mine = data.items.filter(
    scope =>
      (scope.kind === 'user' && scope.owner === name) ||
      (scope.kind === 'project' && projects.includes(scope.owner))
  );
  const own = mine.filter(scope => scope.kind === 'user');
  const others = mine.filter(scope => scope.kind !== 'user');
  const count = own.reduce((sum, scope) => sum + scope.folders, 0);
  const silent = hosts?.filter(each => each.state !== 'ok') ?? [];
  if (looksOnly && silent.length === 0) {
    return null;
  }
  return (
    <section className="bai-storage" aria-label={t('data.storage')}>
      {looksOnly ? null : (
        <div className="bai-card bai-storage-card">
          <h2>
            <FolderOpen size={16} aria-hidden /> {t('data.myFolders')}
          </h2>
          {limit ? (
            <Meter
              label={t('data.made')}
              text={t('data.ofLimit', { count, limit })}
              value={count}
              max={limit}
            />
          ) : (
            <p className="bai-figure">
              {number(count, language)} <span className="bai-help">{t('data.noLimit')}</span>
            </p>
          )}
        </div>
      )}
      {[...own, ...others].map(scope => (
        <Scope key={`${scope.host} ${scope.scope}`} scope={scope} />
      ))}
      {silent.map(each => (
        <div key={each.name} className="bai-card bai-storage-card">
          <h2>
            <HardDrive size={16} aria-hidden /> {each.name}
          </h2>
          <Badge
            tone={each.state === 'slow' ? 'warning' : 'error'}
            icon={<CircleAlert size={14} />}
          >
            {t(`data.hostState.${each.state}`)}
          </Badge>
          {each.reason ? (
            <p className="bai-help">
              <FromService text={each.reason} />
            </p>
          ) : null}
        </div>
      ))}
    </section>
  );
}

function Scope({ scope }: { scope: QuotaScope }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const { host, kind, owner, used_bytes: used, reserved_bytes: reserved } = scope;
  const show = (bytes: number): string => (bytes ? showAmount('mem', bytes, language) : '0 B');
  const most = scope.limit_bytes;
  const label = kind === 'user' ? t('data.mine') : t('data.ofProject', { name: owner });
  return (
    <div className="bai-card bai-storage-card">
      <h2>
        <HardDrive size={16} aria-hidden /> {host}
      </h2>
      {most === null ? (
        <p className="bai-figure">
          {show(used)} <span className="bai-help">{`${label} · ${t('data.noLimit')}`}</span>
        </p>
      ) : (
        <Meter
          label={label}
          text={t('data.ofLimit', { count: show(used), limit: show(most) })}
          value={used}
          max={most}
        />
      )}
      {reserved > 0 ? (
        <p className="bai-help">{t('data.reserved', { size: show(reserved) })}</p>
      ) : null}
    </div>
  );
}
