/** How a simulation went: in figures, over time, and for what was added. */
import type { Schemas } from '@backendai/api';
import { useTranslation } from 'react-i18next';
import { number } from '../amounts';
import { showDuration } from '../durations';
import { useHost } from '../host';
import { Chart } from '../kit/Chart';
import { DataTable } from '../kit/DataTable';
import { slotTitle } from '../slots';
import { sortSlots } from '../amounts';
import { useWording } from '../wording';

type Report = Schemas['SimulationReport'];
type Figures = Schemas['Figures'];

interface Row {
  key: string;
  title: string;
  of(figures: Figures): string;
}

export function SimulationResult({ report }: { report: Report }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const rows = useRows(report);
  const say = useWording();
  const { before, after, recorded, added = [], assumed = 0, held = 0 } = report;
  return (
    <section className="bai-card bai-panel-card" aria-live="polite">
      <h2>{t('simulate.result')}</h2>
      <DataTable
        caption={t('simulate.result')}
        rows={rows}
        rowKey={row => row.key}
        columns={[
          { key: 'figure', title: t('simulate.figure'), head: true, cell: row => row.title },
          {
            key: 'before',
            title: t('simulate.before'),
            align: 'end',
            cell: row => row.of(before)
          },
          ...(after
            ? [
                {
                  key: 'after',
                  title: t('simulate.after'),
                  align: 'end' as const,
                  cell: (row: Row) => row.of(after)
                }
              ]
            : [])
        ]}
      />
      {recorded ? (
        <p className="bai-help">
          {t('simulate.recorded', {
            mean: recorded.mean === null ? '–' : showDuration(recorded.mean, language),
            longest: recorded.longest === null ? '–' : showDuration(recorded.longest, language)
          })}
        </p>
      ) : null}
      <ul className="bai-plain-list">
        {added.map((each, index) => (
          <li key={index}>
            {each.seconds === null
              ? t('simulate.addedNever', { reason: say(each.reason) })
              : each.seconds === 0
                ? t('simulate.addedNow')
                : t('simulate.addedAfter', { time: showDuration(each.seconds, language) })}
          </li>
        ))}
        {assumed ? <li>{t('simulate.assumed', { count: assumed })}</li> : null}
        {held ? <li>{t('simulate.held', { count: held })}</li> : null}
      </ul>
      <Plots report={report} />
    </section>
  );
}

function useRows({ before, after }: Report): Row[] {
  const { t } = useTranslation();
  const { language } = useHost();
  const time = (seconds: number | null): string =>
    seconds === null ? '–' : showDuration(seconds, language);
  const percent = new Intl.NumberFormat(language, {
    style: 'percent',
    maximumFractionDigits: 1
  });
  const slots = sortSlots([
    ...new Set([...Object.keys(before.use), ...Object.keys(after?.use ?? {})])
  ]);
  const waits = (key: 'waits' | 'wide'): Row[] => [
    {
      key: `${key}-started`,
      title: t(`simulate.${key}.started`),
      of: figures =>
        t('simulate.of', {
          started: number(figures[key].started, language, 0),
          sessions: number(figures[key].sessions, language, 0)
        })
    },
    {
      key: `${key}-mean`,
      title: t(`simulate.${key}.mean`),
      of: figures => time(figures[key].mean)
    },
    {
      key: `${key}-p95`,
      title: t(`simulate.${key}.p95`),
      of: figures => time(figures[key].p95)
    },
    {
      key: `${key}-longest`,
      title: t(`simulate.${key}.longest`),
      of: figures => time(figures[key].longest)
    }
  ];
  return [
    ...waits('waits'),
    ...(before.wide.sessions > 0 ? waits('wide') : []),
    ...slots.map((slot): Row => ({
      key: `use-${slot}`,
      title: t('simulate.use', { slot: slotTitle(slot, t) }),
      of: figures => percent.format(figures.use[slot] ?? 0)
    })),
    {
      key: 'fairness',
      title: t('simulate.fairness'),
      of: figures => (figures.fairness === null ? '–' : number(figures.fairness, language, 3))
    },
    {
      key: 'displaced',
      title: t('simulate.displaced'),
      of: figures => number(figures.displaced ?? 0, language, 0)
    },
    { key: 'takes', title: t('simulate.takes'), of: figures => time(figures.seconds) }
  ];
}

function Plots({ report: { before, after } }: { report: Report }): JSX.Element | null {
  const { t } = useTranslation();
  const { language, colorMode } = useHost();
  const moments = [
    ...new Set([...before.points, ...(after?.points ?? [])].map(point => point.at))
  ].sort((one, other) => one - other);
  if (moments.length < 2) {
    return null;
  }
  const percent = new Intl.NumberFormat(language, {
    style: 'percent',
    maximumFractionDigits: 0
  });
  const plots = [
    {
      key: 'waiting' as const,
      title: t('simulate.waitingPlot'),
      show: (value: number) => number(value, language, 0)
    },
    {
      key: 'used' as const,
      title: t('simulate.usedPlot'),
      show: (value: number) => percent.format(value)
    }
  ];
  return (
    <div className="bai-charts">
      {plots.map(({ key, title, show }) => {
        const series = [
          { name: t('simulate.before'), values: along(moments, before.points, key) },
          ...(after
            ? [{ name: t('simulate.after'), values: along(moments, after.points, key) }]
            : [])
        ];
        return (
          <Chart
            key={key}
            title={title}
            summary={t('simulate.plotSummary', {
              title,
              before: show(Math.max(0, ...before.points.map(point => point[key]))),
              after: show(Math.max(0, ...(after ?? before).points.map(point => point[key])))
            })}
            times={moments}
            series={series}
            show={show}
            showTime={seconds => showDuration(seconds, language)}
            words={{
              asTable: t('shares.asTable'),
              time: t('simulate.time'),
              nothing: t('simulate.nothing')
            }}
            colorMode={colorMode}
          />
        );
      })}
    </div>
  );
}

/** Values at common moments: between two points the earlier one holds. */
export function along(
  moments: readonly number[],
  points: readonly Schemas['Point'][],
  key: 'waiting' | 'used'
): (number | null)[] {
  let at = -1;
  return moments.map(moment => {
    while ((points[at + 1]?.at ?? Infinity) <= moment) {
      at += 1;
    }
    const last = points.at(-1);
    return last && moment > last.at ? null : (points[at]?.[key] ?? null);
  });
}
