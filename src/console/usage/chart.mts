import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { costText, countText, durationText, plural } from '../base/format.mjs';
import { type ChartColumn, ColumnChart } from '../ui/column-chart.mjs';
import { countTicks, durationTicks, durationTickText, type Ticks } from '../ui/scale.mjs';
import type { TimeUnit, TimeUsage, UsageSum } from './sums.mjs';

interface Measure {
  readonly name: string;
  /** Returns the total, then the parts that are drawn over it. */
  readonly valuesOf: (sum: UsageSum) => readonly number[];
  readonly ticks: (max: number) => Ticks;
  readonly tickText: (value: number) => string;
  readonly textOf: (...values: number[]) => string;
  readonly styles: readonly string[];
}

const centTicks = (max: number): Ticks => {
  const [, ...rest] = countTicks(Math.ceil(100 * max));
  return [0, ...rest.map((cents) => cents / 100)];
};

const measures: readonly [Measure, ...Measure[]] = [
  {
    name: 'Jobs',
    valuesOf: ({ jobs, failed }) => [jobs, failed],
    ticks: countTicks,
    tickText: countText,
    textOf: (jobs = 0, failed = 0) => `${plural(jobs, 'job')}, ${countText(failed)} failed`,
    styles: ['usual', 'wrong'],
  },
  {
    name: 'Tokens',
    valuesOf: ({ inputTokens, outputTokens }) => [inputTokens + outputTokens, outputTokens],
    ticks: countTicks,
    tickText: (value) => value.toLocaleString('en', { notation: 'compact' }),
    textOf: (all = 0, output = 0) => `${countText(all - output)} tokens in, ${countText(output)} out`,
    styles: ['soft', 'usual'],
  },
  {
    name: 'Cost',
    valuesOf: ({ costUsd }) => [costUsd ?? 0],
    ticks: centTicks,
    tickText: (value) => `$${value}`,
    textOf: (cost = 0) => costText(cost),
    styles: ['usual'],
  },
  {
    name: 'Model time',
    valuesOf: ({ modelMs }) => [modelMs],
    ticks: durationTicks,
    tickText: durationTickText,
    textOf: (ms = 0) => durationText(ms),
    styles: ['usual'],
  },
];

const legends: Readonly<Record<string, readonly (readonly [style: string, name: string])[]>> = {
  Jobs: [
    ['usual', 'all'],
    ['wrong', 'failed'],
  ],
  Tokens: [
    ['soft', 'in'],
    ['usual', 'out'],
  ],
};

interface TimeChartProps {
  readonly unit: TimeUnit;
  readonly times: readonly TimeUsage[];
}

/** Shows a column for each day or month. The user selects the measure. */
export function TimeChart({ unit, times }: TimeChartProps) {
  const [name, setName] = useState('Jobs');
  const [pointed, setPointed] = useState<number | null>(null);
  const measure = measures.find((candidate) => candidate.name === name) ?? measures[0];
  const columns = times.map((time): ChartColumn => ({ label: timeText(time.at), values: measure.valuesOf(time) }));
  const textOf = ({ values }: ChartColumn) => measure.textOf(...(values ?? []));
  const shown = pointed === null ? undefined : columns[pointed];
  const each = times.length <= 7 ? 1 : Math.ceil(times.length / 5);
  return html`<figure class="card">
    <figcaption class="row between">
      <h2 class="row">
        <span>${measure.name} a ${unit}</span>
        ${legends[name]?.map(([style, part]) => html`<small class="legend"><span class="swatch ${style}" />${part}</small>`)}
      </h2>
      <small class="muted figure">${shown && `${shown.label}: ${textOf(shown)}`}</small>
      <select class="narrow" aria-label="What the columns show" value=${name} onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => setName(currentTarget.value)}>
        ${measures.map((option) => html`<option key=${option.name}>${option.name}</option>`)}
      </select>
    </figcaption>
    <${ColumnChart}
      title=${`${measure.name} a ${unit}`}
      summary=${`${times.length} ${unit}s; the tables below have the figures`}
      styles=${measure.styles}
      columns=${columns}
      ticks=${measure.ticks(Math.max(0, ...columns.map(({ values }) => values?.[0] ?? 0)))}
      tickText=${measure.tickText}
      isNamed=${(_: ChartColumn, index: number) => (columns.length - 1 - index) % each === Math.floor(each / 2)}
      pointed=${pointed}
      onPoint=${setPointed}
      textOf=${textOf}
    />
  </figure>`;
}

/** Formats a day or month: `3 Mar`, `Mar 2026`. */
export function timeText(at: string): string {
  const parts =
    at.length === 7 ? ({ month: 'short', year: 'numeric' } as const) : ({ day: 'numeric', month: 'short' } as const);
  return new Date(at).toLocaleDateString('en-GB', { ...parts, timeZone: 'UTC' });
}
