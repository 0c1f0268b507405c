import { unwrap, type Schemas, type Session } from '@backendai/api';
import { useQueries } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { number, showAmount } from '../amounts';
import { useHost } from '../host';
import { Chart } from '../kit/Chart';
import { keys } from '../queries';
import { percent } from '../sessions/UsageCell';
import { useUsage } from '../sessions/usage';
import { append, sumBefore, sumUp, type Sum } from './sums';

const NONE: Session[] = [];

/** Of so many sessions it is asked what they have used before. */
const ASKED = 12;

/** What one's sessions use together, and have used in the last minutes. */
export function LiveUse({ sessions }: { sessions: readonly Session[] }): JSX.Element {
  const { t } = useTranslation();
  const { language, colorMode } = useHost();
  const usage = useUsage(NONE);
  const [live, setLive] = useState<readonly Sum[]>([]);
  useEffect(() => setLive(old => append(old, sumUp(usage))), [usage]);
  const before = useBefore(sessions, live[0]?.time ?? null);
  const points = [...before, ...live];
  const time = new Intl.DateTimeFormat(language, { timeStyle: 'medium', hourCycle: 'h23' });
  const bytes = (value: number): string => showAmount('mem', value, language);
  const charts = [
    {
      key: 'cpu',
      name: t('usage.cores'),
      values: points.map(point => point.cpu),
      show: (value: number) => number(value, language, 2)
    },
    {
      key: 'memory',
      name: t('usage.memory'),
      values: points.map(point => point.memory),
      show: bytes,
      binary: true
    },
    {
      key: 'gpu',
      name: t('usage.gpu'),
      values: points.map(point => point.utilization),
      show: (value: number) => percent(value, language),
      top: 1
    }
  ].filter(({ key, values }) => key === 'cpu' || values.some(value => value !== null));
  return (
    <section className="bai-card" aria-labelledby="bai-live">
      <h2 id="bai-live">{t('dashboard.live')}</h2>
      <div className="bai-live-charts">
        {charts.map(({ key, name, values, show, ...rest }) => {
          const last = [...values].reverse().find(value => value !== null);
          return (
            <Chart
              key={key}
              title={t(`usage.${key}`)}
              summary={`${name} ${typeof last === 'number' ? show(last) : '–'}`}
              times={points.map(point => point.time)}
              series={[{ name, values }]}
              show={show}
              showTime={seconds => time.format(new Date(seconds * 1000))}
              height={140}
              colorMode={colorMode}
              words={{
                asTable: t('usage.asTable'),
                time: t('usage.time'),
                nothing: t('dashboard.nothingRuns')
              }}
              {...rest}
            />
          );
        })}
      </div>
    </section>
  );
}

/** What the sessions have used before *moment*, the first that was seen. */
function useBefore(sessions: readonly Session[], moment: number | null): Sum[] {
  const host = useHost();
  const running = sessions.filter(each => each.status === 'RUNNING').slice(0, ASKED);
  const asked = useQueries({
    queries: running.map(({ id }) => ({
      queryKey: [...keys.usage, 'before', id],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        unwrap(
          host.api.GET('/api/sessions/{session_id}/usage', {
            params: { path: { session_id: id } },
            signal
          })
        ),
      enabled: host.visible,
      // What comes later is told by the stream.
      staleTime: Infinity,
      gcTime: 0
    }))
  });
  // Who ends meanwhile has used it nevertheless: the past does not change.
  const kept = useRef(new Map<string, Schemas['UsageSeries']>());
  const known = new Map(kept.current);
  running.forEach(({ id }, index) => {
    const series = asked[index]?.data?.series;
    if (series) {
      known.set(id, series);
    }
  });
  useEffect(() => {
    kept.current = known;
  });
  return moment === null ? [] : sumBefore([...known.values()], moment);
}
