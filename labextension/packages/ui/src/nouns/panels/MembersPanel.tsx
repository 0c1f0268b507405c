/** Who is in a project. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { UserMinus, UserPlus } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { DataTable } from '../../kit/DataTable';
import { RelativeTime } from '../../kit/RelativeTime';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { meQuery } from '../../queries';
import { ask } from '../client';
import type { Shown } from '../noun';
import { ReferenceField } from '../ReferenceField';
import { administers } from '../roles';
import { useAct } from '../useAct';
import { Reference } from '../Value';
import { WhyButton } from '../WhyButton';

type Member = Schemas['Membership'];

export function MembersPanel({ row }: { row: Shown<'projects'> }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const path = `/api/projects/${encodeURIComponent(row.id)}/members`;
  const key = ['members', row.id] as const;
  const [name, setName] = useState('');
  const { data, error, refetch } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ask<Member[]>(host, 'GET', path, { signal }),
    enabled: host.visible
  });
  const act = useAct(key);
  const change = async (body: { add?: string[]; remove?: string[] }): Promise<void> => {
    const results = await ask<Schemas['MemberResult'][]>(host, 'POST', path, { body });
    const problem = results.find(result => result.error)?.error;
    if (problem) {
      throw new Error(problem);
    }
  };
  const add = (user: string): Promise<boolean> =>
    act.run(
      () => change({ add: [user] }),
      t('members.added', { name: user }),
      () => void act.run(() => change({ remove: [user] }))
    );
  const remove = (user: string): Promise<boolean> =>
    act.run(
      () => change({ remove: [user] }),
      t('members.removed', { name: user }),
      () => void act.run(() => change({ add: [user] }))
    );
  const writes = me !== undefined && administers(me);
  return (
    <>
      {error ? <LoadError error={error} stale={false} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Skeleton rows={2} label={t('state.loading')} /> : null}
      {data?.length === 0 ? <p className="bai-help">{t('members.none')}</p> : null}
      {data?.length ? (
        <DataTable
          caption={t('members.caption', { count: data.length })}
          rows={data}
          rowKey={member => member.user_id}
          columns={[
            {
              key: 'name',
              title: t('members.user'),
              head: true,
              cell: member => <Reference noun="users" name={member.user} />
            },
            {
              key: 'source',
              title: t('members.source'),
              cell: member =>
                t(`members.from.${member.source}`, { defaultValue: member.source })
            },
            {
              key: 'since',
              title: t('members.since'),
              cell: member => <RelativeTime iso={member.created_at} language={host.language} />
            },
            ...(writes
              ? [
                  {
                    key: 'actions',
                    title: t('list.actions'),
                    quiet: true,
                    align: 'end' as const,
                    cell: (member: Member) => (
                      <Button
                        size="small"
                        kind="quiet"
                        icon={<UserMinus size={14} aria-hidden />}
                        aria-label={t('members.removeLabel', { name: member.user })}
                        disabled={act.busy}
                        onClick={() => void remove(member.user)}
                      >
                        {t('members.remove')}
                      </Button>
                    )
                  }
                ]
              : [])
          ]}
        />
      ) : null}
      {writes ? (
        <div className="bai-inline-form">
          <ReferenceField
            noun="users"
            label={t('members.add')}
            draft={name}
            none={t('form.choose')}
            onChange={setName}
          />
          <WhyButton
            icon={<UserPlus size={16} aria-hidden />}
            busy={act.busy}
            why={name.trim() ? undefined : t('bulkUsers.blocked')}
            onClick={() => void add(name.trim()).then(done => done && setName(''))}
          >
            {t('members.addButton')}
          </WhyButton>
        </div>
      ) : null}
    </>
  );
}
