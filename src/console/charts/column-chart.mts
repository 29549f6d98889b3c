import { useId } from 'preact/hooks';
import { html } from '../ui/html.mjs';
import type { Ticks } from './scale.mjs';
import { Scrubber } from './scrubber.mjs';

export interface ChartColumn {
  /** Of its time, for the axis and whoever points at it. */
  readonly label: string;
  /** One for each series, drawn over each other in that order; null where there is no value. */
  readonly values: readonly number[] | null;
}

export interface ChartProps {
  readonly title: string;
  /** One sentence that says what there is to see. */
  readonly summary: string;
  /** Looks of the series, in the order of the values: names of classes. */
  readonly looks: readonly string[];
  readonly columns: readonly ChartColumn[];
  readonly ticks: Ticks;
  readonly tickText: (value: number) => string;
  /** Which columns are named at the axis. */
  readonly isNamed: (column: ChartColumn, index: number) => boolean;
  readonly pointed: number | null;
  readonly onPoint: (index: number | null) => void;
  readonly textOf: (column: ChartColumn) => string;
}

const width = 360;
const height = 136;
/** Where columns stand. The style sheet lays the scrubber over it. */
const plot = { left: 40, right: 356, top: 8, bottom: 114 } as const;

const depthOf = (value: number, top: number) => (value / top) * (plot.bottom - plot.top);

/** Columns over time, the newest at the right. */
export function ColumnChart(props: ChartProps) {
  const { title, summary, columns, pointed, onPoint, textOf } = props;
  const titleId = useId();
  const shown = columns.at(pointed ?? -1);
  return html`<div class="chart">
    <svg viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${titleId} ${titleId}-desc">
      <title id=${titleId}>${title}</title>
      <desc id="${titleId}-desc">${summary}</desc>
      <${Axis} ...${props} />
      ${columns.map((column, index) => html`<${Column} chart=${props} column=${column} index=${index} />`)}
    </svg>
    <div class="over">
      <${Scrubber}
        label=${title}
        count=${columns.length}
        index=${pointed}
        text=${shown === undefined ? '' : `${shown.label}: ${textOf(shown)}`}
        onPoint=${onPoint}
      />
    </div>
  </div>`;
}

function Axis({ ticks, tickText }: ChartProps) {
  const top = ticks.at(-1) ?? 1;
  return html`<g class="axis">
    ${ticks.map((tick) => {
      const y = plot.bottom - depthOf(tick, top);
      return html`<line x1=${plot.left} x2=${plot.right} y1=${y} y2=${y} class=${tick === 0 ? 'base' : 'grid'} />
        <text x=${plot.left - 6} y=${y + 4} text-anchor="end">${tickText(tick)}</text>`;
    })}
  </g>`;
}

interface ColumnProps {
  readonly chart: ChartProps;
  readonly column: ChartColumn;
  readonly index: number;
}

function Column({ chart, column, index }: ColumnProps) {
  const { columns, ticks, looks, pointed, isNamed } = chart;
  const step = (plot.right - plot.left) / columns.length;
  const x = plot.left + index * step;
  const top = ticks.at(-1) ?? 1;
  const gap = step > 3 ? Math.min(2, step / 5) : 0;
  return html`<g>
    ${pointed === index && html`<rect class="pointed" x=${x} width=${step} y=${plot.top} height=${plot.bottom - plot.top} />`}
    ${column.values?.map((value, series) => {
      const depth = value === 0 ? 0 : Math.max(1.5, depthOf(value, top));
      return html`<rect class="column ${looks[series]}" x=${x + gap / 2} width=${step - gap} y=${plot.bottom - depth} height=${depth} />`;
    })}
    ${isNamed(column, index) && html`<${Name} x=${x + step / 2} text=${column.label} />`}
  </g>`;
}

/** Beside the edges it stays inside of them. */
function Name({ x, text }: { readonly x: number; readonly text: string }) {
  const half = text.length * 3;
  const at = Math.min(plot.right - half, Math.max(plot.left + half, x));
  return html`<g class="axis">
    <line class="base" x1=${x} x2=${x} y1=${plot.bottom} y2=${plot.bottom + 4} />
    <text x=${at} y=${plot.bottom + 18} text-anchor="middle">${text}</text>
  </g>`;
}
