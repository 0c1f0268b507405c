/** Who would have to leave for whom, now, under the rules there are or under others. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { Scissors } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { FromService } from '../FromService';
import { useHost } from '../host';
import { DataTable } from '../kit/DataTable';
import { RelativeTime } from '../kit/RelativeTime';
import { SelectField } from '../kit/SelectField';
import { Banner, EmptyState, Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { ask } from '../nouns/client';
import { SpecialField } from '../nouns/SpecialField';
import { readDraft, type Draft, type Kind } from '../nouns/kinds';
import { Siblings } from '../nouns/Siblings';
import { useAct } from '../nouns/useAct';
import { WhyButton } from '../nouns/WhyButton';
import { valueWord } from '../nouns/words';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { useGroup } from './useGroup';

type Trial = Schemas['PreemptionTrial'];
export const RULES = {
  order: ['oldest', 'newest', 'fewest-sessions', 'smallest-resources'],
  mode: ['terminate', 'reschedule'],
  victim_scope: ['user', 'project', 'domain', 'resource-group']
} as const;
export const MIN_RUNTIME: Kind = {
  type: 'duration',
  most: 2 ** 31 - 1,
  specials: [{ value: null, text: 'asItIs' }]
};

export default function PreemptionPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { name, choice, instead } = useGroup();
  const [rules, setRules] = useState<Record<string, string>>({});
  const [least, setLeast] = useState<Draft>('~asItIs');
  const [trial, setTrial] = useState<Trial | null>(null);
  const act = useAct();
  const runtime = readDraft(MIN_RUNTIME, least);
  const attempt = (): Promise<boolean> =>
    act.run(async () => {
      const chosen = Object.fromEntries(Object.entries(rules).filter(([, rule]) => rule));
      const least_ =
        'value' in runtime && runtime.value !== null ? { min_runtime: runtime.value } : {};
      const path = `/api/resource-groups/${encodeURIComponent(name)}/preemptions/trial`;
      setTrial(await ask<Trial>(host, 'POST', path, { body: { ...chosen, ...least_ } }));
    });
  return (
    <>
      <PageHeading title={t('preemption.title')} />
      <Siblings path="/admin/scheduler/preemption" />
      <p className="bai-lead">{t('preemption.about')}</p>
      {choice ? <div className="bai-toolbar">{choice}</div> : null}
      <section className="bai-card">
        <h2>{t('preemption.rules')}</h2>
        <div className="bai-form-grid">
          {Object.entries(RULES).map(([rule, values]) => (
            <SelectField
              key={rule}
              label={t(`fields.resource-groups.scheduler_opts.preemption.${rule}`)}
              value={rules[rule] ?? ''}
              options={[
                { value: '', text: t('special.asItIs') },
                ...values.map(value => ({ value, text: valueWord(t, rule, value) }))
              ]}
              onChange={value => setRules({ ...rules, [rule]: value })}
            />
          ))}
          <SpecialField
            kind={MIN_RUNTIME}
            label={t('fields.resource-groups.scheduler_opts.preemption.min_runtime')}
            draft={least}
            error={runtime.wrong === undefined ? undefined : t(`wrong.${runtime.wrong}`)}
            onChange={setLeast}
          />
        </div>
        <div className="bai-panel-actions">
          <WhyButton
            kind="primary"
            icon={<Scissors size={16} aria-hidden />}
            busy={act.busy}
            why={runtime.wrong === undefined ? undefined : t('form.correctFirst')}
            onClick={() => void attempt()}
          >
            {t('preemption.try')}
          </WhyButton>
        </div>
      </section>
      {trial ? <TrialResult trial={trial} /> : null}
      {instead ?? <Enacted group={name} />}
    </>
  );
}

function TrialResult({ trial }: { trial: Trial }): JSX.Element {
  const { t } = useTranslation();
  return (
    <section className="bai-card bai-panel-card" aria-live="polite">
      <h2>{t('preemption.result')}</h2>
      {trial.enabled ? null : (
        <Banner tone="info" icon={<Scissors size={18} />}>
          {t('preemption.off')}
        </Banner>
      )}
      {trial.items.length ? (
        <DataTable
          caption={t('preemption.result')}
          rows={trial.items}
          rowKey={item => item.session}
          columns={[
            {
              key: 'name',
              title: t('preemption.for'),
              head: true,
              cell: item => (
                <PageLink to={`/sessions/${item.session}`}>
                  {t('preemption.of', { name: item.name, owner: item.owner })}
                </PageLink>
              )
            },
            {
              key: 'node',
              title: t('preemption.where'),
              cell: item => item.nodes.join(', ')
            },
            {
              key: 'victims',
              title: t('preemption.leaves'),
              cell: item => <Victims victims={item.victims} />
            },
            {
              key: 'mode',
              title: t('fields.resource-groups.scheduler_opts.preemption.mode'),
              cell: item => valueWord(t, 'mode', item.mode)
            }
          ]}
        />
      ) : (
        <p>{t('preemption.nobody', { count: trial.waiting })}</p>
      )}
    </section>
  );
}

function Victims({ victims }: { victims: Schemas['PreemptedSession'][] }): JSX.Element {
  const { t } = useTranslation();
  return (
    <ul className="bai-plain-list">
      {victims.map(victim => (
        <li key={victim.id}>
          <PageLink to={`/sessions/${victim.id}`}>
            {t('preemption.of', { name: victim.name, owner: victim.owner })}
          </PageLink>
          <FromService className="bai-reason" text={victim.reason} />
        </li>
      ))}
    </ul>
  );
}

function Enacted({ group }: { group: string }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery({
    queryKey: ['preemptions', group],
    queryFn: ({ signal }) =>
      ask<Schemas['PreemptionPage']>(host, 'GET', '/api/preemptions', {
        params: { query: { resource_group: group, limit: 20 } },
        signal
      }),
    enabled: host.visible
  });
  return (
    <section className="bai-card bai-panel-card">
      <h2>{t('preemption.enacted')}</h2>
      {error ? <LoadError error={error} stale={false} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Skeleton rows={2} label={t('state.loading')} /> : null}
      {data?.items.length === 0 ? (
        <EmptyState
          icon={<Scissors size={32} />}
          title={t('preemption.emptyTitle')}
          text={t('preemption.emptyText')}
        />
      ) : null}
      {data?.items.length ? (
        <DataTable
          caption={t('preemption.enacted')}
          rows={data.items}
          rowKey={item => item.id}
          columns={[
            {
              key: 'name',
              title: t('preemption.for'),
              head: true,
              cell: item => item.name ?? t('preemption.somebody')
            },
            {
              key: 'kind',
              title: t('preemption.kind'),
              cell: item => valueWord(t, 'preemptionKind', item.kind)
            },
            {
              key: 'victims',
              title: t('preemption.leaves'),
              cell: item => (
                <>
                  <Victims victims={item.victims ?? []} />
                  {item.others ? t('preemption.others', { count: item.others }) : null}
                </>
              )
            },
            {
              key: 'when',
              title: t('preemption.when'),
              cell: item => <RelativeTime iso={item.created_at} language={host.language} />
            }
          ]}
        />
      ) : null}
    </section>
  );
}
