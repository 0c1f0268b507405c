/** Reading a registry: started here, and followed while it goes on. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { RefreshCw } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { number } from '../../amounts';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { Field } from '../../kit/Field';
import { Progress } from '../../kit/Progress';
import { RelativeTime } from '../../kit/RelativeTime';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { meQuery } from '../../queries';
import { usePolling } from '../../stream';
import { ask } from '../client';
import type { Shown } from '../noun';
import { isSuperadmin } from '../roles';
import { useAct } from '../useAct';
import { FromService } from '../../FromService';

type Rescan = Schemas['RescanStatus'];

export function RescannedAt({ row }: { row: Shown<'registries'> }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  return row.rescanned_at ? (
    <RelativeTime iso={row.rescanned_at} language={language} />
  ) : (
    <>{t('account.never')}</>
  );
}

const isRunning = (rescan: Rescan | undefined): boolean =>
  rescan?.state === 'running' || rescan?.state === 'waiting';

export function RescanPanel({ row }: { row: Shown<'registries'> }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const polling = usePolling();
  const [repository, setRepository] = useState('');
  const path = `/api/registries/${encodeURIComponent(row.id)}/rescan`;
  const key = ['rescan', row.id] as const;
  const { data, error, refetch } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ask<Rescan>(host, 'GET', path, { signal }),
    refetchInterval: query => (isRunning(query.state.data) ? polling : false),
    enabled: host.visible
  });
  const act = useAct(key, ['noun', 'registries']);
  const start = (): Promise<boolean> =>
    act.run(() =>
      ask(host, 'POST', path, {
        body: repository.trim() ? { repository: repository.trim() } : {}
      })
    );
  return (
    <>
      {error ? <LoadError error={error} stale={false} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Skeleton rows={1} label={t('state.loading')} /> : null}
      {data ? <RescanState rescan={data} /> : null}
      {me && isSuperadmin(me) ? (
        <div className="bai-inline-form">
          <Field
            label={t('rescan.repository')}
            optional={t('form.optional')}
            value={repository}
            help={t('rescan.repositoryHelp')}
            onChange={setRepository}
          />
          <Button
            icon={<RefreshCw size={16} aria-hidden />}
            busy={isRunning(data)}
            disabled={isRunning(data) || act.busy}
            onClick={() => void start()}
          >
            {t(isRunning(data) ? 'rescan.running' : 'rescan.start')}
          </Button>
        </div>
      ) : null}
    </>
  );
}

export function RescanState({ rescan }: { rescan: Rescan }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const { state, done = 0, total = 0, added, updated, removed, skipped = [] } = rescan;
  const more = rescan.skipped_more ?? 0;
  if (state === 'idle') {
    return <p className="bai-help">{t('rescan.idle')}</p>;
  }
  return (
    <div className="bai-stack">
      {isRunning(rescan) ? (
        <Progress
          label={t('rescan.tags')}
          text={t('rescan.of', {
            done: number(done, language),
            total: number(total, language)
          })}
          value={done}
          max={total > 0 ? total : null}
        />
      ) : (
        <p role="status" className="bai-line">
          <strong>{t(`rescan.states.${state ?? 'idle'}`)}</strong>{' '}
          {rescan.ended_at ? <RelativeTime iso={rescan.ended_at} language={language} /> : null}
          {rescan.reason ? <FromService className="bai-reason" text={rescan.reason} /> : null}
        </p>
      )}
      <p className="bai-help">
        {t('rescan.counts', {
          added: added ?? 0,
          updated: updated ?? 0,
          removed: removed ?? 0
        })}
      </p>
      {skipped.length ? (
        <details className="bai-more">
          <summary>{t('rescan.skipped', { count: skipped.length + more })}</summary>
          <ul className="bai-plain-list">
            {skipped.map(each => (
              <li key={`${each.repository}:${each.tag}`}>
                <code>
                  {each.repository}:{each.tag}
                </code>{' '}
                <FromService text={each.reason} />
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </div>
  );
}
