/** The drawing of a chart: a canvas that has to be told of colours and sizes. */
import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import { COLOURS, type ChartProps } from './Chart';

type Props = ChartProps & { height: number };

export function Lines(props: Props): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const shown = useRef(props);
  shown.current = props;
  const isLine = props.times.length > 1;
  const names = props.series.map(each => each.name).join('\n');
  useEffect(() => {
    const element = place.current;
    if (!element) {
      return undefined;
    }
    const made = new UPlot(options(element, shown), data(shown.current), element);
    plot.current = made;
    const watch = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: shown.current.height })
    );
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
    // A canvas keeps the colours it was drawn with, and its lines their names.
  }, [names, props.colorMode, props.top, isLine]);
  useEffect(() => plot.current?.setData(data(props)));
  return <div ref={place} className="bai-chart-canvas" />;
}

function data({ times, series }: Props): UPlot.AlignedData {
  return [[...times], ...series.map(each => [...each.values])];
}

function options(element: HTMLElement, shown: { current: Props }): UPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const { series, times, top, height, binary = false } = shown.current;
  const axis = {
    stroke: colour('--bai-text-muted'),
    grid: { stroke: colour('--bai-border'), width: 1 },
    ticks: { show: false },
    font: `12px ${style.fontFamily}`
  };
  return {
    width: element.clientWidth,
    height,
    padding: [8, HALF_A_TIME, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { range: (_, first, last) => [Math.min(first, last - LEAST), last] },
      y: { range: (_, least, most) => [Math.min(0, least ?? 0), highest(most, top, binary)] }
    },
    axes: [
      {
        ...axis,
        size: 28,
        space: 90,
        values: (_, times) => times.map(time => shown.current.showTime(time))
      },
      {
        ...axis,
        size: (_, values) => roomFor(values),
        space: 22,
        incrs: binary ? POWERS : DECIMALS,
        values: (_, values) => values.map(value => shown.current.show(value))
      }
    ],
    series: [
      {},
      ...series.map((each, index) => ({
        label: each.name,
        stroke: colour(`--bai-line-${index % COLOURS}`),
        width: 1.75,
        // What has been measured once is no line yet.
        points: {
          show: times.length === 1,
          size: 7,
          fill: colour(`--bai-line-${index % COLOURS}`)
        },
        spanGaps: false,
        ...(series.length === 1 ? { fill: colour('--bai-line-fill') } : {})
      }))
    ]
  };
}

/** Seconds that a chart shows at least, so that a line which has just begun grows. */
const LEAST = 60;

/** Room for half of the time that is written where the line ends. */
const HALF_A_TIME = 30;

/** Room for the longest of an axis' amounts; numbers are of one width, letters about. */
function roomFor(values: readonly string[] | null): number {
  return Math.max(44, 14 + 7 * Math.max(0, ...(values ?? []).map(value => value.length)));
}

/** Steps of an axis of bytes. */
const POWERS = Array.from({ length: 52 }, (_, power) => 2 ** power);

/** Steps of any other axis: what is smaller is written like its neighbour. */
const DECIMALS = Array.from({ length: 42 }, (_, step) =>
  Number(`${[1, 2, 5][step % 3]}e${Math.floor(step / 3) - 2}`)
);

/** A line of nothing needs room above it as well, and next to nothing a few steps. */
function highest(most: number | null, top: number | undefined, binary: boolean): number {
  const wanted = Math.max(top ?? 0, (most ?? 0) * (top === undefined ? 1.1 : 1));
  return wanted === 0 ? 1 : Math.max(wanted, 4 * ((binary ? POWERS : DECIMALS)[0] ?? 0));
}
