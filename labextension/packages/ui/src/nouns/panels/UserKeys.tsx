/** The keys of one person. */
import { useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { DataTable } from '../../kit/DataTable';
import { RelativeTime } from '../../kit/RelativeTime';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { PageLink } from '../../PageLink';
import { meQuery } from '../../queries';
import { KeypairBadges } from '../Badges';
import { listNouns, nounKeys } from '../client';
import type { Shown } from '../noun';
import { administers, standsBelow } from '../roles';
import { Reference } from '../Value';

export function UserKeys({ row }: { row: Shown<'users'> }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const { data, error, refetch } = useQuery({
    queryKey: [...nounKeys.all('keypairs'), 'of', row.name],
    queryFn: ({ signal }) =>
      listNouns(host, 'keypairs', { user: row.name, limit: 100 }, signal),
    enabled: host.visible
  });
  const keys = (data?.items ?? []) as unknown as Shown<'keypairs'>[];
  return (
    <>
      {error ? <LoadError error={error} stale={false} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Skeleton rows={1} label={t('state.loading')} /> : null}
      {keys.length ? (
        <DataTable
          caption={t('nouns.keypairs.title')}
          rows={keys}
          rowKey={key => key.id}
          columns={[
            {
              key: 'name',
              title: t('fields.keypairs.name'),
              head: true,
              cell: key => (
                <span className="bai-status">
                  <PageLink className="bai-name" to={`/admin/keypairs/${key.id}`}>
                    {key.name}
                  </PageLink>
                  <span className="bai-badges">
                    <KeypairBadges row={key} />
                  </span>
                </span>
              )
            },
            {
              key: 'policy',
              title: t('fields.any.resource_policy'),
              cell: key =>
                key.resource_policy ? (
                  <Reference noun="keypair-policies" name={key.resource_policy} />
                ) : (
                  '–'
                )
            },
            {
              key: 'used',
              title: t('fields.keypairs.last_used_at'),
              cell: key =>
                key.last_used_at ? (
                  <RelativeTime iso={key.last_used_at} language={host.language} />
                ) : (
                  t('account.never')
                )
            }
          ]}
        />
      ) : null}
      {me && administers(me) && standsBelow(row.role, me) ? (
        <div className="bai-panel-actions">
          <Button
            icon={<Plus size={16} aria-hidden />}
            onClick={() =>
              host.open(`/admin/keypairs/new?user=${encodeURIComponent(row.name)}`)
            }
          >
            {t('nouns.keypairs.new')}
          </Button>
        </div>
      ) : null}
    </>
  );
}
