import { html } from 'htm/preact';
import type { RefObject } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { apart, placeAt, type Ticks } from './scale.mjs';

interface ScrubberProps {
  /** Accessible name, such as "Requests a minute". */
  readonly label: string;
  readonly count: number;
  /** Index of the selected place; null if none is selected. */
  readonly index: number | null;
  /** Value at the selected place, else at the last one. */
  readonly text: string;
  readonly onPoint: (index: number | null) => void;
}

/**
 * Covers a row of places, of which the user selects one with the mouse, a finger or the arrow keys. It is a range
 * input, which screen readers support.
 */
export function Scrubber({ label, count, index, text, onPoint }: ScrubberProps) {
  const follow = ({ currentTarget, clientX, pointerType }: PointerEvent & { currentTarget: HTMLElement }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    if (pointerType !== 'touch') onPoint(placeAt((clientX - left) / width, count));
  };
  const leave = ({ currentTarget }: PointerEvent & { currentTarget: HTMLElement }) => {
    if (!currentTarget.matches(':focus')) onPoint(null);
  };
  return html`<input
    class="scrubber"
    type="range"
    min="0"
    max=${Math.max(0, count - 1)}
    value=${index ?? count - 1}
    aria-label=${label}
    aria-valuetext=${text}
    onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => onPoint(currentTarget.valueAsNumber)}
    onFocus=${({ currentTarget }: { currentTarget: HTMLInputElement }) => onPoint(currentTarget.valueAsNumber)}
    onBlur=${() => onPoint(null)}
    onPointerMove=${follow}
    onPointerLeave=${leave}
  />`;
}

export interface ChartColumn {
  /** Time of the column, for the axis and for the selected value. */
  readonly label: string;
  /** One value for each series, drawn over each other in this order; null if the column has no values. */
  readonly values: readonly number[] | null;
}

export interface ChartProps {
  readonly title: string;
  /** Sentence that summarizes the chart. */
  readonly summary: string;
  /** CSS classes of the series, in the order of the values. */
  readonly styles: readonly string[];
  readonly columns: readonly ChartColumn[];
  readonly ticks: Ticks;
  readonly tickText: (value: number) => string;
  /** Whether the axis names the column, if there is room. */
  readonly isNamed: (column: ChartColumn, index: number) => boolean;
  readonly pointed: number | null;
  readonly onPoint: (index: number | null) => void;
  readonly textOf: (column: ChartColumn) => string;
}

/** Height of the drawing in pixels. Its width is that of the element on the page. */
const height = 136;
const firstWidth = 360;
/** Area of the columns. The style sheet places the scrubber over it. */
const plot = { left: 44, rightGap: 4, top: 8, bottom: 114 } as const;

const depthOf = (value: number, top: number) => (value / top) * (plot.bottom - plot.top);

/** Draws columns over time, the newest at the right. */
export function ColumnChart(props: ChartProps) {
  const { title, summary, columns, pointed, onPoint, textOf } = props;
  const titleId = useId();
  const frame = useRef<HTMLDivElement>(null);
  const chart = { ...props, right: useWidth(frame) - plot.rightGap };
  const named = namedColumns(chart);
  const shown = columns.at(pointed ?? -1);
  return html`<div class="chart" ref=${frame}>
    <svg viewBox="0 0 ${chart.right + plot.rightGap} ${height}" height=${height} role="img" aria-labelledby="${titleId} ${titleId}-desc">
      <title id=${titleId}>${title}</title>
      <desc id="${titleId}-desc">${summary}</desc>
      <${Axis} ...${chart} />
      ${columns.map((column, index) => html`<${Column} chart=${chart} column=${column} index=${index} isNamed=${named.includes(index)} />`)}
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

/**
 * Returns the width of an element, and redraws the chart when it changes: a stretched drawing would stretch its texts,
 * too.
 */
function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(firstWidth);
  useEffect(() => {
    const { current } = element;
    if (current === null) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(firstWidth / 2, current.clientWidth)));
    observer.observe(current);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

interface DrawnChart extends ChartProps {
  /** Right end of the columns. */
  readonly right: number;
}

const glyphWidth = 6;
const nameGap = 10;

function namedColumns(chart: DrawnChart): readonly number[] {
  const { columns, isNamed } = chart;
  const all = columns.flatMap((column, index) => (isNamed(column, index) ? [index] : []));
  const longest = Math.max(0, ...all.map((index) => columns[index]?.label.length ?? 0));
  return apart(all, (longest * glyphWidth + nameGap) / stepOf(chart));
}

function Axis({ ticks, tickText, right }: DrawnChart) {
  const top = ticks.at(-1) ?? 1;
  return html`<g class="axis">
    ${ticks.map((tick) => {
      const y = plot.bottom - depthOf(tick, top);
      return html`<line x1=${plot.left} x2=${right} y1=${y} y2=${y} class=${tick === 0 ? 'base' : 'grid'} />
        <text x=${plot.left - 6} y=${y + 4} text-anchor="end">${tickText(tick)}</text>`;
    })}
  </g>`;
}

interface ColumnProps {
  readonly chart: DrawnChart;
  readonly column: ChartColumn;
  readonly index: number;
  readonly isNamed: boolean;
}

const stepOf = ({ columns, right }: DrawnChart) => (right - plot.left) / columns.length;

function Column({ chart, column, index, isNamed }: ColumnProps) {
  const { ticks, styles, pointed, right } = chart;
  const step = stepOf(chart);
  const x = plot.left + index * step;
  const top = ticks.at(-1) ?? 1;
  const gap = step > 3 ? Math.min(2, step / 5) : 0;
  return html`<g>
    ${pointed === index && html`<rect class="pointed" x=${x} width=${step} y=${plot.top} height=${plot.bottom - plot.top} />`}
    ${column.values?.map((value, series) => {
      const depth = value === 0 ? 0 : Math.max(1.5, depthOf(value, top));
      return html`<rect class="column ${styles[series]}" x=${x + gap / 2} width=${step - gap} y=${plot.bottom - depth} height=${depth} />`;
    })}
    ${isNamed && html`<${Name} x=${x + step / 2} right=${right} text=${column.label} />`}
  </g>`;
}

/** Draws the name of a column. At an edge, the name stays inside the drawing. */
function Name({ x, right, text }: { readonly x: number; readonly right: number; readonly text: string }) {
  const half = (text.length * glyphWidth) / 2;
  const at = Math.min(right - half, Math.max(plot.left + half, x));
  return html`<g class="axis">
    <line class="base" x1=${x} x2=${x} y1=${plot.bottom} y2=${plot.bottom + 4} />
    <text x=${at} y=${plot.bottom + 18} text-anchor="middle">${text}</text>
  </g>`;
}
