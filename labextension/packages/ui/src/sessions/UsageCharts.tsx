/** What a session has used lately, as lines that go on while one looks. */
import { unwrap, type Schemas, type ShownSession } from '@backendai/api';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { number, showAmount } from '../amounts';
import { showDuration } from '../durations';
import { useHost } from '../host';
import { Chart, type Series } from '../kit/Chart';
import { EmptyState, Skeleton } from '../kit/States';
import { ChartLine } from 'lucide-react';
import { LoadError } from '../LoadError';
import { keys } from '../queries';
import { usePolling } from '../stream';
import { shorten } from './Containers';
import { isEnded } from './status';
import { percent } from './UsageCell';

type Usage = Schemas['SessionUsage'];
type Columns = Schemas['UsageSeries'];

/** What was known, and what has come since; no more than the service itself keeps. */
export function joinUsage(old: Usage | undefined, news: Usage): Usage {
  const before = old?.kept_from === news.kept_from ? old.series : undefined;
  const last = before?.time.at(-1) ?? -Infinity;
  const fresh = news.series.time.findIndex(time => time > last);
  const start = fresh < 0 ? news.series.time.length : fresh;
  const oldest = (news.series.time.at(-1) ?? last) - news.kept_seconds;
  const kept = before?.time.findIndex(time => time >= oldest) ?? 0;
  const length = before?.time.length ?? 0;
  const names = Object.keys(news.series) as (keyof Columns)[];
  const joined = names.map(name => {
    const earlier = before?.[name] ?? [];
    const later = news.series[name];
    if (earlier.length === 0 && later.length === 0) {
      return [name, []] as const;
    }
    // A column that begins later than the others knows nothing of before.
    const filled = earlier.length ? earlier : Array<null>(length).fill(null);
    const added = later.length
      ? later.slice(start)
      : news.series.time.slice(start).map(() => null);
    return [name, [...filled.slice(kept < 0 ? length : kept), ...added]] as const;
  });
  return { ...news, series: Object.fromEntries(joined) as unknown as Columns };
}

function useSessionUsage(session: ShownSession) {
  const host = useHost();
  const client = useQueryClient();
  const polling = usePolling();
  const key = [...keys.usageOf, session.id];
  return useQuery<Usage>({
    queryKey: key,
    queryFn: async ({ signal }) => {
      const old = client.getQueryData<Usage>(key);
      const since = old?.series.time.at(-1);
      const news = await unwrap(
        host.api.GET('/api/sessions/{session_id}/usage', {
          params: {
            path: { session_id: session.id },
            query: since === undefined ? {} : { since }
          },
          signal
        })
      );
      return joinUsage(old, news);
    },
    refetchInterval: isEnded(session.status) ? false : polling,
    enabled: host.visible
  });
}

export function UsageCharts({ session }: { session: ShownSession }): JSX.Element {
  const { t } = useTranslation();
  const { data, error, refetch } = useSessionUsage(session);
  const over = isEnded(session.status);
  if (!data) {
    return error ? (
      <LoadError error={error} onRetry={() => void refetch()} />
    ) : (
      <Skeleton rows={4} label={t('state.loading')} />
    );
  }
  if (data.series.time.length === 0 && !data.totals) {
    return (
      <EmptyState
        icon={<ChartLine size={32} />}
        title={t(over ? 'usage.neverTitle' : 'usage.noneTitle')}
        text={t(
          !session.started_at ? 'usage.notStarted' : over ? 'usage.neverText' : 'usage.noneText'
        )}
      />
    );
  }
  return (
    <div className="bai-stack">
      {error ? <LoadError error={error} stale onRetry={() => void refetch()} /> : null}
      <Totals usage={data} />
      {data.series.time.length ? <Charts usage={data} /> : null}
      <p className="bai-help">
        {t('usage.kept', { minutes: Math.round(data.kept_seconds / 60) })}
      </p>
    </div>
  );
}

function Charts({ usage }: { usage: Usage }): JSX.Element {
  const { t } = useTranslation();
  const { language, colorMode } = useHost();
  const { series, now, devices } = usage;
  const bytes = (value: number): string => showAmount('mem', value, language);
  const rate = (value: number): string => t('usage.rate', { amount: bytes(value) });
  const time = new Intl.DateTimeFormat(language, { timeStyle: 'short', hourCycle: 'h23' });
  const precise = new Intl.DateTimeFormat(language, {
    timeStyle: 'medium',
    hourCycle: 'h23'
  });
  const span = (series.time.at(-1) ?? 0) - (series.time[0] ?? 0);
  const format = span > 180 ? time : precise;
  const lines = (...wanted: [string, (number | null)[]][]): Series[] =>
    wanted.filter(([, values]) => values.length).map(([name, values]) => ({ name, values }));
  const several = devices.length > 1;
  const charts: {
    key: string;
    series: Series[];
    show(value: number): string;
    top?: number | null | undefined;
    times?: number[];
  }[] = [
    {
      key: 'cpu',
      series: lines([t('usage.cores'), series.cpu]),
      show: value => number(value, language, 2),
      top: now?.cpu_limit
    },
    {
      key: 'memory',
      series: lines([t('usage.memory'), series.memory]),
      show: bytes,
      top: now?.memory_limit
    },
    {
      key: 'gpu',
      series: several
        ? devices
            .slice(0, 4)
            .map(each => ({ name: shorten(each.name), values: each.utilization }))
        : lines([t('usage.gpu'), series.utilization]),
      show: value => percent(value, language),
      top: 1,
      ...(several ? { times: devices[0]?.time ?? [] } : {})
    },
    {
      key: 'gpuMemory',
      series: lines([t('usage.gpuMemory'), series.device_memory]),
      show: bytes,
      top: now?.device_memory_limit
    },
    {
      key: 'network',
      series: lines(
        [t('usage.received'), series.receive_rate],
        [t('usage.sent'), series.send_rate]
      ),
      show: rate
    },
    {
      key: 'disk',
      series: lines(
        [t('usage.read'), series.read_rate],
        [t('usage.written'), series.write_rate]
      ),
      show: rate
    }
  ];
  return (
    <div className="bai-charts">
      {charts
        .filter(chart => chart.series.some(each => each.values.length))
        .map(({ key, show, top, ...chart }) => (
          <div key={key} className="bai-card">
            <Chart
              title={t(`usage.${key}`)}
              summary={summarise(t(`usage.${key}`), chart.series, show)}
              times={chart.times ?? series.time}
              series={chart.series}
              show={show}
              showTime={seconds => format.format(new Date(seconds * 1000))}
              top={top ?? undefined}
              binary={show === bytes || show === rate}
              colorMode={colorMode}
              words={{
                asTable: t('usage.asTable'),
                time: t('usage.time'),
                nothing: t('usage.noneTitle')
              }}
            />
          </div>
        ))}
    </div>
  );
}

/** `CPU: cores 1.5`: what a chart shows now, for those who do not see it. */
function summarise(title: string, series: Series[], show: (value: number) => string): string {
  const told = series.map(({ name, values }) => {
    const last = [...values].reverse().find(value => value !== null);
    return `${name} ${last === undefined || last === null ? '–' : show(last)}`;
  });
  return `${title}: ${told.join(', ')}`;
}

function Totals({ usage }: { usage: Usage }): JSX.Element | null {
  const { t } = useTranslation();
  const { language } = useHost();
  const { totals } = usage;
  if (!totals) {
    return null;
  }
  const bytes = (value: number | null | undefined): string | null =>
    typeof value === 'number' ? showAmount('mem', value, language) : null;
  const seconds = (value: number | null | undefined): string | null =>
    typeof value === 'number' ? showDuration(Math.round(value), language) : null;
  const facts: [string, string | null][] = [
    [t('usage.cpuTime'), seconds(totals.cpu_seconds)],
    [t('usage.memoryPeak'), bytes(totals.memory_peak)],
    [t('usage.gpuTime'), seconds(totals.device_seconds)],
    [t('usage.gpuMemoryPeak'), bytes(totals.device_memory_peak)],
    [t('usage.received'), bytes(totals.received_bytes)],
    [t('usage.sent'), bytes(totals.sent_bytes)],
    [t('usage.read'), bytes(totals.read_bytes)],
    [t('usage.written'), bytes(totals.written_bytes)]
  ];
  return (
    <dl className="bai-totals" aria-label={t('usage.totals')}>
      {facts
        .filter(([, value]) => value !== null)
        .map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
