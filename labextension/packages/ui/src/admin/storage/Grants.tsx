/** Who may do what on a storage host: whatever a domain, a project or a policy permits. */
import { useQueries } from '@tanstack/react-query';
import { KeyRound } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { DataTable } from '../../kit/DataTable';
import { EmptyState, Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { Inactive } from '../../nouns/Badges';
import { Reference } from '../../nouns/Value';
import { GIVERS, giversQuery, readGrants, type Grant } from './grants';
import { Permissions } from './Permissions';

export function Grants({ name }: { name: string }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const answers = useQueries({ queries: GIVERS.map(by => giversQuery(host, by)) });
  const error = answers.find(each => each.error)?.error;
  const told = answers.every(each => each.data !== undefined);
  const retry = (): void => answers.forEach(each => void each.refetch());
  return (
    <>
      {error ? <LoadError error={error} stale={told} onRetry={retry} /> : null}
      {told ? (
        <Told
          grants={GIVERS.flatMap((by, at) => readGrants(by, answers[at]?.data ?? [], name))}
        />
      ) : error ? null : (
        <Skeleton rows={3} label={t('state.loading')} />
      )}
    </>
  );
}

function Told({ grants }: { grants: Grant[] }): JSX.Element {
  const { t } = useTranslation();
  if (!grants.length) {
    return (
      <EmptyState
        icon={<KeyRound size={32} />}
        title={t('storage.noGrantsTitle')}
        text={t('storage.noGrantsText')}
      />
    );
  }
  return (
    <div className="bai-card bai-table-card">
      <DataTable
        caption={t('storage.grants')}
        rows={grants}
        rowKey={({ by, domain = '', name: giver }) => `${by} ${domain} ${giver}`}
        columns={[
          {
            key: 'giver',
            title: t('storage.says'),
            head: true,
            cell: ({ by, domain, name: giver, isActive }) => (
              <span className="bai-status">
                <Reference noun={by} name={giver} domain={domain} />
                {isActive ? null : <Inactive />}
              </span>
            )
          },
          { key: 'by', title: t('storage.giver'), cell: ({ by }) => t(`storage.givers.${by}`) },
          {
            key: 'permissions',
            title: t('storage.permitted'),
            cell: ({ permissions }) => <Permissions given={permissions} />
          }
        ]}
      />
    </div>
  );
}
