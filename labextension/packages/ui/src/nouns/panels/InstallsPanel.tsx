/** Which nodes hold an image, and having those of a group fetch or remove it. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { Download, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { FromService } from '../../FromService';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { DataTable } from '../../kit/DataTable';
import { Progress } from '../../kit/Progress';
import { RelativeTime } from '../../kit/RelativeTime';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { meQuery } from '../../queries';
import { usePolling } from '../../stream';
import { ask } from '../client';
import type { Shown } from '../noun';
import { ReferenceField } from '../ReferenceField';
import { isSuperadmin } from '../roles';
import { useAct } from '../useAct';
import { WhyButton } from '../WhyButton';

type Install = Schemas['Install'];
const isUnderWay = ({ state }: Install): boolean => state === 'waiting' || state === 'pulling';

export function InstallsPanel({ row }: { row: Shown<'images'> }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const polling = usePolling();
  const key = ['installs', row.id] as const;
  const path = `/api/images/${encodeURIComponent(row.id)}`;
  const { data, error, refetch } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ask<Install[]>(host, 'GET', `${path}/installs`, { signal }),
    refetchInterval: query => (query.state.data?.some(isUnderWay) ? polling : false),
    enabled: host.visible
  });
  const act = useAct(key, ['noun', 'images']);
  const [group, setGroup] = useState('');
  const wish = (wanted: 'present' | 'absent'): Promise<boolean> =>
    act.run(
      async () => {
        const body = { resource_group: group, wanted };
        const { asked, skipped } = await ask<Schemas['InstallAnswer']>(
          host,
          'POST',
          `${path}/install`,
          { body }
        );
        if (!asked.length && skipped.length) {
          throw new Error(skipped.map(({ node, reason }) => `${node}: ${reason}`).join('; '));
        }
      },
      t(wanted === 'present' ? 'images.installAsked' : 'images.removeAsked', { group })
    );
  return (
    <>
      {error ? <LoadError error={error} stale={false} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Skeleton rows={1} label={t('state.loading')} /> : null}
      {data?.length === 0 ? <p className="bai-help">{t('images.nowhere')}</p> : null}
      {data?.length ? (
        <DataTable
          caption={t('nouns.images.panels.installs')}
          rows={data}
          rowKey={install => `${install.agent_id} ${install.reference}`}
          columns={[
            { key: 'node', title: t('images.node'), head: true, cell: each => each.node },
            { key: 'state', title: t('images.state'), cell: each => <State install={each} /> },
            {
              key: 'by',
              title: t('images.askedBy'),
              cell: each => each.requested_by || '–'
            },
            {
              key: 'since',
              title: t('form.changed'),
              cell: each =>
                each.changed_at ? (
                  <RelativeTime iso={each.changed_at} language={host.language} />
                ) : (
                  '–'
                )
            }
          ]}
        />
      ) : null}
      {me && isSuperadmin(me) ? (
        <div className="bai-inline-form">
          <ReferenceField
            noun="resource-groups"
            label={t('fields.any.resource_group')}
            draft={group}
            none={t('form.choose')}
            onChange={setGroup}
          />
          <WhyButton
            icon={<Download size={16} aria-hidden />}
            busy={act.busy}
            why={group ? undefined : t('bulkUsers.blocked')}
            onClick={() => void wish('present')}
          >
            {t('images.install')}
          </WhyButton>
          <Button
            icon={<Trash2 size={16} aria-hidden />}
            {...(group ? {} : { 'aria-disabled': true })}
            onClick={() => group && void wish('absent')}
          >
            {t('images.uninstall')}
          </Button>
        </div>
      ) : null}
    </>
  );
}

function State({ install }: { install: Install }): JSX.Element {
  const { t } = useTranslation();
  const { state, progress, reason, wanted } = install;
  const text = t(`images.states.${wanted === 'absent' ? 'removing' : 'holding'}.${state}`);
  if (state === 'pulling') {
    return (
      <Progress
        label={text}
        text={
          progress === null || progress === undefined ? '' : `${Math.round(progress * 100)} %`
        }
        value={progress ?? 0}
        max={progress === null || progress === undefined ? null : 1}
      />
    );
  }
  return (
    <span className="bai-status">
      {text}
      {reason ? <FromService className="bai-reason" text={reason} /> : null}
    </span>
  );
}
