/** Values over time as lines, and as a table for those who read rather than look. */
import { lazy, Suspense, useId, useState } from 'react';
import { patiently } from '../patiently';
import { DataTable } from './DataTable';
import { Switch } from './Switch';

const Lines = lazy(async () => ({
  default: (await patiently(() => import('./Lines'))).Lines
}));

export interface Series {
  name: string;
  /** One value for each time; null where nothing is known. */
  values: readonly (number | null)[];
}

export interface ChartProps {
  title: string;
  /** What the lines show, in one sentence. */
  summary: string;
  /** Seconds since 1970. */
  times: readonly number[];
  series: readonly Series[];
  /** Writes a value with its unit. */
  show(value: number): string;
  /** Writes a time for the axis and the table. */
  showTime(seconds: number): string;
  /** Where the axis ends, if that is known: a limit, or 100 %. */
  top?: number | undefined;
  /** Counted in powers of 1024, so that the axis is divided by them. */
  binary?: boolean;
  height?: number;
  words: { asTable: string; time: string; nothing: string };
  /** Changes when colours do. */
  colorMode: string;
}

const ROWS = 60;

/** The chart's library comes with the first chart that is shown. */
export function Chart(props: ChartProps): JSX.Element {
  const { title, summary, times, series, words, height = 160 } = props;
  const [table, setTable] = useState(false);
  const id = useId();
  return (
    <figure className="bai-chart" aria-labelledby={id}>
      <figcaption>
        <span className="bai-chart-title" id={id}>
          {title}
        </span>
        <Legend {...props} />
        {times.length ? (
          <Switch label={words.asTable} checked={table} onChange={setTable} />
        ) : null}
      </figcaption>
      {times.length === 0 ? (
        <p className="bai-chart-nothing" style={{ height }}>
          {words.nothing}
        </p>
      ) : table ? (
        <div className="bai-chart-table">
          <DataTable
            caption={title}
            rows={sample(times)}
            rowKey={row => String(row)}
            columns={[
              {
                key: 'time',
                title: words.time,
                head: true,
                cell: row => props.showTime(times[row] ?? 0)
              },
              ...series.map((each, index) => ({
                key: String(index),
                title: each.name,
                align: 'end' as const,
                cell: (row: number) => write(each.values[row], props.show)
              }))
            ]}
          />
        </div>
      ) : (
        <div role="img" aria-label={summary} className="bai-chart-lines" style={{ height }}>
          <Suspense fallback={null}>
            <Lines {...props} height={height} />
          </Suspense>
        </div>
      )}
    </figure>
  );
}

/** The last value of every line, beside the line's colour. */
function Legend({ title, series, show }: ChartProps): JSX.Element {
  return (
    <span className="bai-chart-legend">
      {series.map((each, index) => (
        <span key={each.name}>
          <span aria-hidden className={`bai-chart-key bai-line-${index % COLOURS}`} />
          {each.name === title ? null : `${each.name} `}
          <strong>
            {write(
              [...each.values].reverse().find(value => value !== null),
              show
            )}
          </strong>
        </span>
      ))}
    </span>
  );
}

export const COLOURS = 4;

function write(value: number | null | undefined, show: (value: number) => string): string {
  return value === null || value === undefined ? '–' : show(value);
}

/** So many rows that one can read them, the newest first. */
function sample(times: readonly number[]): number[] {
  const step = Math.max(1, Math.ceil(times.length / ROWS));
  return times
    .map((_, index) => index)
    .filter(index => (times.length - 1 - index) % step === 0)
    .reverse();
}
