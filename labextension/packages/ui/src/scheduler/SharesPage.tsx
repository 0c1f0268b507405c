/** Fair share: who has had how much of a resource group, and whose turn is next. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { Pencil, TriangleAlert } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { number } from '../amounts';
import { FromService } from '../FromService';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { Chart } from '../kit/Chart';
import { DataTable, type Column } from '../kit/DataTable';
import { Field } from '../kit/Field';
import { FormDialog } from '../kit/FormDialog';
import { Banner, EmptyState, Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { AmountsField } from '../nouns/AmountsField';
import { ask } from '../nouns/client';
import { readDraft } from '../nouns/kinds';
import { administers, isSuperadmin } from '../nouns/roles';
import { Siblings } from '../nouns/Siblings';
import { useAct } from '../nouns/useAct';
import { Amounts } from '../nouns/Value';
import { valueWord } from '../nouns/words';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { meQuery } from '../queries';
import { slotTitle } from '../slots';
import { useGroup } from './useGroup';
import { Scale } from 'lucide-react';

type Table = Schemas['ShareTable'];
type Entry = Schemas['ShareEntry'];

interface Scope {
  group: string;
  domain: string | null;
  project: string | null;
  user: string | null;
}

export default function SharesPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { name, choice, instead } = useGroup();
  const [address] = useAddress();
  const me = useQuery(meQuery(host)).data;
  const scope: Scope = {
    group: name,
    domain: address.get('domain'),
    project: address.get('project'),
    user: address.get('user')
  };
  const path = `/api/resource-groups/${encodeURIComponent(name)}/shares`;
  const query = {
    ...(scope.domain ? { domain: scope.domain } : {}),
    ...(scope.project ? { project: scope.project } : {})
  };
  const { data, error, refetch } = useQuery({
    queryKey: ['shares', name, query],
    queryFn: ({ signal }) => ask<Table>(host, 'GET', path, { params: { query }, signal }),
    enabled: host.visible && name !== ''
  });
  return (
    <>
      <PageHeading title={t('shares.title')}>
        {me && isSuperadmin(me) && name ? (
          <Button
            icon={<Pencil size={16} aria-hidden />}
            onClick={() => host.open(`/admin/groups/${encodeURIComponent(name)}/edit`)}
          >
            {t('shares.editRules')}
          </Button>
        ) : null}
      </PageHeading>
      <Siblings path="/admin/scheduler/shares" />
      <p className="bai-lead">{t('shares.about')}</p>
      {choice ? <div className="bai-toolbar">{choice}</div> : null}
      <Trail scope={scope} />
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {instead}
      {name && !data && !error ? <Skeleton rows={4} label={t('state.loading')} /> : null}
      {data ? <Shares table={data} scope={scope} /> : null}
      {name ? <Usage scope={scope} /> : null}
    </>
  );
}

/** An address deeper or higher in the same group. */
function placeOf(scope: Partial<Scope>): string {
  const named = Object.entries(scope).filter(([, value]) => value);
  return `/admin/scheduler/shares?${new URLSearchParams(named as [string, string][]).toString()}`;
}

function Trail({ scope }: { scope: Scope }): JSX.Element | null {
  const { t } = useTranslation();
  const { group, domain, project, user } = scope;
  const steps: [string, Partial<Scope>][] = [[group, { group }]];
  if (domain) {
    steps.push([domain, { group, domain }]);
  }
  if (project) {
    steps.push([project, { group, domain, project }]);
  }
  if (user) {
    steps.push([user, scope]);
  }
  return group ? (
    <nav aria-label={t('shares.trail')} className="bai-trail">
      <ol>
        {steps.map(([text, place], index) => (
          <li key={text + String(index)}>
            {index === steps.length - 1 ? (
              <span aria-current="true">{text}</span>
            ) : (
              <PageLink to={placeOf(place)}>{text}</PageLink>
            )}
          </li>
        ))}
      </ol>
    </nav>
  ) : null;
}

function Shares({ table, scope }: { table: Table; scope: Scope }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const rules = table.fair_share_spec;
  const [edited, setEdited] = useState<Entry | null>(null);
  const columns = useColumns(scope, setEdited);
  return (
    <div className="bai-stack">
      {table.warnings?.map(warning => (
        <Banner key={warning} tone="warning" icon={<TriangleAlert size={18} />}>
          <FromService text={warning} />
        </Banner>
      ))}
      <dl className="bai-tiles">
        {[
          [t('fields.any.scheduler'), valueWord(t, 'scheduler', table.scheduler)],
          [t('shares.halfLife'), days(rules.half_life_days)],
          [t('shares.lookback'), days(rules.lookback_days)],
          [
            t('fields.resource-groups.fair_share_spec.default_weight'),
            number(rules.default_weight ?? 1, language, 2)
          ]
        ].map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {table.entries.length && !scope.user ? (
        <div className="bai-card bai-table-card">
          <DataTable
            caption={t('shares.caption')}
            rows={table.entries}
            rowKey={entry => entry.id}
            columns={columns}
          />
        </div>
      ) : null}
      {table.entries.length === 0 ? (
        <EmptyState
          icon={<Scale size={32} />}
          title={t('shares.emptyTitle')}
          text={t('shares.emptyText')}
        />
      ) : null}
      {edited ? (
        <ShareDialog entry={edited} scope={scope} onClose={() => setEdited(null)} />
      ) : null}
    </div>
  );

  function days(count: number | undefined): string {
    return t('shares.days', { count: count ?? 0, shown: number(count ?? 0, language, 2) });
  }
}

function useColumns(scope: Scope, onEdit: (entry: Entry) => void): Column<Entry>[] {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const percent = (part: number): string =>
    new Intl.NumberFormat(host.language, { style: 'percent', maximumFractionDigits: 1 }).format(
      part
    );
  const writes = me !== undefined && (scope.domain ? administers(me) : isSuperadmin(me));
  const deeper = (entry: Entry): string =>
    placeOf({
      group: scope.group,
      domain: entry.kind === 'domain' ? entry.name : scope.domain,
      project: entry.kind === 'project' ? entry.name : scope.project,
      ...(entry.kind === 'user' ? { user: entry.name } : {})
    });
  return [
    {
      key: 'name',
      title: t('shares.who'),
      head: true,
      cell: entry => (
        <PageLink className="bai-name" to={deeper(entry)}>
          {entry.name}
        </PageLink>
      )
    },
    {
      key: 'weight',
      title: t('shares.weight'),
      align: 'end',
      cell: entry => (
        <>
          {number(entry.weight, host.language, 2)}
          {entry.weight_is_default ? (
            <span className="bai-reason">{t('shares.usual')}</span>
          ) : null}
        </>
      )
    },
    {
      key: 'history',
      title: t('shares.history'),
      align: 'end',
      cell: entry => percent(entry.history_share)
    },
    {
      key: 'live',
      title: t('shares.live'),
      align: 'end',
      cell: entry => (
        <>
          {percent(entry.live_share)}
          {entry.dominant_slot ? (
            <span className="bai-reason">{slotTitle(entry.dominant_slot, t)}</span>
          ) : null}
        </>
      )
    },
    {
      key: 'share',
      title: t('shares.share'),
      align: 'end',
      cell: entry => number(entry.share, host.language, 3)
    },
    {
      key: 'guaranteed',
      title: t('shares.guaranteed'),
      cell: entry => <SomeAmounts amounts={entry.guaranteed} />
    },
    {
      key: 'maximum',
      title: t('shares.maximum'),
      cell: entry => <SomeAmounts amounts={entry.maximum ?? {}} none="∞" />
    },
    {
      key: 'waiting',
      title: t('shares.waiting'),
      align: 'end',
      cell: entry => number(entry.waiting, host.language, 0)
    },
    ...(writes
      ? [
          {
            key: 'actions',
            title: t('list.actions'),
            quiet: true,
            align: 'end' as const,
            cell: (entry: Entry) => (
              <Button
                size="small"
                kind="quiet"
                icon={<Pencil size={14} aria-hidden />}
                aria-label={t('form.editTitle', { name: entry.name })}
                onClick={() => onEdit(entry)}
              >
                {t('form.edit')}
              </Button>
            )
          }
        ]
      : [])
  ];
}

function SomeAmounts(props: { amounts: Record<string, string>; none?: string }): JSX.Element {
  const { amounts, none = '–' } = props;
  return Object.keys(amounts).length ? <Amounts amounts={amounts} /> : <>{none}</>;
}

const SLOTS = { type: 'slots', limits: false } as const;

function ShareDialog(props: { entry: Entry; scope: Scope; onClose(): void }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { entry, scope, onClose } = props;
  const act = useAct(['shares']);
  const [weight, setWeight] = useState(entry.weight_is_default ? '' : String(entry.weight));
  const [guaranteed, setGuaranteed] = useState<Record<string, string>>(entry.guaranteed);
  const [maximum, setMaximum] = useState<Record<string, string>>(entry.maximum ?? {});
  const read = { guaranteed: readDraft(SLOTS, guaranteed), maximum: readDraft(SLOTS, maximum) };
  const wrongWeight = weight !== '' && !(Number(weight) > 0);
  const wrong =
    wrongWeight || read.guaranteed.wrong !== undefined || read.maximum.wrong !== undefined;
  const where =
    entry.kind === 'domain'
      ? { domain: entry.name }
      : entry.kind === 'project'
        ? { domain: scope.domain ?? '', project: entry.name }
        : { domain: scope.domain ?? '', project: scope.project, user: entry.name };
  const save = async (): Promise<void> => {
    const given = (value: unknown): unknown =>
      Object.keys((value ?? {}) as object).length ? value : null;
    const change = {
      ...where,
      weight: weight === '' ? null : Number(weight),
      guaranteed: given('value' in read.guaranteed ? read.guaranteed.value : null),
      maximum: given('value' in read.maximum ? read.maximum.value : null)
    };
    const path = `/api/resource-groups/${encodeURIComponent(scope.group)}/shares`;
    const ok = await act.send(
      () => ask(host, 'POST', path, { body: { changes: [change] } }),
      t('form.saved', { name: entry.name })
    );
    if (ok) {
      onClose();
    }
  };
  return (
    <FormDialog
      open
      size="medium"
      title={t('form.editTitle', { name: entry.name })}
      submit={t('form.save')}
      cancel={t('form.cancel')}
      busy={act.busy}
      error={act.refused}
      blocked={wrong ? t('form.correctFirst') : undefined}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <Field
        label={t('shares.weight')}
        help={t('shares.weightHelp')}
        value={weight}
        decimal
        placeholder={t('shares.usual')}
        error={wrongWeight ? t('wrong.number') : undefined}
        onChange={setWeight}
      />
      <AmountsField
        kind={SLOTS}
        label={t('shares.guaranteed')}
        help={t('shares.guaranteedHelp')}
        rows={guaranteed}
        onChange={setGuaranteed}
      />
      <AmountsField
        kind={SLOTS}
        label={t('shares.maximum')}
        help={t('shares.maximumHelp')}
        rows={maximum}
        onChange={setMaximum}
      />
    </FormDialog>
  );
}

const DAYS = 28;
const DAY = 86_400_000;

/** The days up to the last one that is known, whether something was used or not. */
export function everyDay(
  used: readonly Schemas['UsedDay'][],
  count: number
): Schemas['UsedDay'][] {
  const last = Math.max(...used.map(({ day }) => Date.parse(day)));
  return Array.from({ length: count }, (_, index) => {
    const day = new Date(last - (count - 1 - index) * DAY).toISOString().slice(0, 10);
    return used.find(each => each.day === day) ?? { day, hours: {} };
  });
}

function Usage({ scope }: { scope: Scope }): JSX.Element | null {
  const { t } = useTranslation();
  const host = useHost();
  const { language } = host;
  const path = `/api/resource-groups/${encodeURIComponent(scope.group)}/usage`;
  const query = Object.fromEntries(
    [
      ['domain', scope.domain],
      ['project', scope.project],
      ['user', scope.user]
    ].filter(([, value]) => value)
  ) as Record<string, string>;
  const { data, error, refetch } = useQuery({
    queryKey: ['usage-days', scope],
    queryFn: ({ signal }) =>
      ask<Schemas['UsageHistory']>(host, 'GET', path, {
        params: { query: { ...query, days: DAYS } },
        signal
      }),
    enabled: host.visible
  });
  if (error) {
    return <LoadError error={error} stale={false} onRetry={() => void refetch()} />;
  }
  const days = data?.days.length ? everyDay(data.days, DAYS) : [];
  const slots = [...new Set(days.flatMap(day => Object.keys(day.hours)))];
  const times = days.map(day => Date.parse(day.day) / 1000);
  const format = new Intl.DateTimeFormat(language, {
    month: 'short',
    day: 'numeric',
    timeZone: 'UTC'
  });
  const showDay = (seconds: number): string => format.format(new Date(seconds * 1000));
  return (
    <section className="bai-card bai-panel-card" aria-label={t('shares.usage')}>
      <h2>{t('shares.usage')}</h2>
      <p className="bai-help">{t('shares.usageText')}</p>
      {data && !slots.length ? <p className="bai-help">{t('shares.noUsage')}</p> : null}
      <div className="bai-charts">
        {slots.map(slot => {
          const unit = t(slot === 'mem' ? 'shares.gibHours' : 'shares.hours');
          const show = (value: number): string =>
            `${number(value, language, value < 10 ? 2 : 1)} ${unit}`;
          const values = days.map(day => day.hours[slot] ?? 0);
          const total = values.reduce((sum, value) => sum + value, 0);
          return (
            <Chart
              key={slot}
              title={slotTitle(slot, t)}
              summary={t('shares.summary', { slot: slotTitle(slot, t), total: show(total) })}
              times={times}
              series={[{ name: slotTitle(slot, t), values }]}
              show={show}
              showTime={showDay}
              words={{
                asTable: t('shares.asTable'),
                time: t('shares.day'),
                nothing: t('shares.noUsage')
              }}
              colorMode={host.colorMode}
            />
          );
        })}
      </div>
    </section>
  );
}
