import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { StatusBody } from '../../shared/api/status.js';
import { countText, durationText, hourText, plural } from '../base/format.mjs';
import { type ChartColumn, type ChartProps, ColumnChart } from '../ui/column-chart.mjs';
import { countTicks, durationTicks, durationTickText } from '../ui/scale.mjs';
import { type Column, Table } from '../ui/tables.mjs';

type HourMinute = StatusBody['last_hour'][number];

/** Returns sums and maxima of these minutes; 0 without minutes. */
export function hourFigures(minutes: readonly HourMinute[]) {
  const sumOf = (figureOf: (minute: HourMinute) => number) =>
    minutes.reduce((sum, minute) => sum + figureOf(minute), 0);
  const maxOf = (figureOf: (minute: HourMinute) => number) => Math.max(0, ...minutes.map(figureOf));
  return {
    requests: sumOf(({ requests }) => requests),
    errors: sumOf(({ errors }) => errors),
    jobs: sumOf(({ jobs }) => jobs),
    refused: sumOf(({ refused }) => refused),
    failedJobs: sumOf(({ failed_jobs: failed }) => failed),
    maxRequests: maxOf(({ requests }) => requests),
    maxWrong: maxOf(({ errors, refused }) => errors + refused),
    maxP50: maxOf(({ job_ms: ms }) => ms?.p50 ?? 0),
    maxP95: maxOf(({ job_ms: ms }) => ms?.p95 ?? 0),
  };
}

const minuteMs = 60_000;

/** Returns the start times of the missing minutes of the hour before the first one, oldest first. */
export function minutesBefore(minutes: readonly HourMinute[]): number[] {
  const first = Date.parse(minutes[0]?.at ?? '');
  if (Number.isNaN(first)) return [];
  const missing = Math.max(0, 60 - minutes.length);
  return Array.from({ length: missing }, (_, index) => first - (missing - index) * minuteMs);
}

/** Place on the axis: a minute, or five minutes; `figures` are null before the start of the service. */
interface ChartPlace {
  readonly at: string | number;
  readonly figures: HourMinute | null;
}

/** Time that the charts show, in equal steps. */
interface ChartSpan {
  readonly title: string;
  readonly inStep: string;
  /** Name of the table. */
  readonly caption: string;
  readonly places: readonly ChartPlace[];
  /** Whether the axis names the step. */
  readonly isNamed: (column: ChartColumn) => boolean;
}

function hourSpan(minutes: readonly HourMinute[]): ChartSpan {
  return {
    title: 'The last hour',
    inStep: 'a minute',
    caption: 'The last hour, minute by minute',
    places: [
      ...minutesBefore(minutes).map((at) => ({ at, figures: null })),
      ...minutes.map((figures) => ({ at: figures.at, figures })),
    ],
    isNamed: ({ label }) => /:(00|15|30|45)$/.test(label),
  };
}

const stepMs = 5 * minuteMs;
const stepsOfDay = 288;

/** Returns all steps of the day before the current one. The service leaves out steps without any events. */
export function dayPlaces(steps: readonly HourMinute[], startedAt: string, nowMs: number): ChartPlace[] {
  const known = new Map(steps.map((step) => [Date.parse(step.at), step]));
  const open = Math.floor(nowMs / stepMs);
  return Array.from({ length: stepsOfDay }, (_, index) => {
    const at = (open - stepsOfDay + index) * stepMs;
    const isBefore = at + stepMs <= Date.parse(startedAt);
    const empty = {
      at: new Date(at).toISOString(),
      requests: 0,
      errors: 0,
      jobs: 0,
      failed_jobs: 0,
      refused: 0,
      job_ms: null,
    };
    return { at, figures: known.get(at) ?? (isBefore ? null : empty) };
  });
}

function daySpan(steps: readonly HourMinute[], startedAt: string, nowMs: number): ChartSpan {
  return {
    title: 'The last day',
    inStep: 'in 5 minutes',
    caption: 'The last day, in steps of five minutes',
    places: dayPlaces(steps, startedAt, nowMs),
    isNamed: ({ label }) => /^(00|03|06|09|12|15|18|21):00$/.test(label),
  };
}

type Spans = 'hour' | 'day';
const spans: readonly (readonly [Spans, string])[] = [
  ['hour', 'Hour'],
  ['day', 'Day'],
];

interface LastHourProps {
  readonly minutes: readonly HourMinute[];
  /** Steps of five minutes of the last day. */
  readonly steps: readonly HourMinute[];
  /** Start of the service. */
  readonly startedAt: string;
}

/** Shows requests, errors and job times of each minute of the last hour, or each five minutes of the last day. */
export function LastHour({ minutes, steps, startedAt }: LastHourProps) {
  const [pointed, setPointed] = useState<number | null>(null);
  const [shown, show] = useState<Spans>('hour');
  const select = (name: Spans) => {
    show(name);
    setPointed(null);
  };
  const nowMs = Date.parse(minutes.at(-1)?.at ?? startedAt);
  const span = shown === 'hour' ? hourSpan(minutes) : daySpan(steps, startedAt, nowMs);
  const charts = [requestChart(span), errorChart(span), timeChart(span)];
  return html`<section class="card" aria-labelledby="now-hour">
    <div class="row between">
      <h2 id="now-hour">${span.title}</h2>
      <div class="row choices" role="group" aria-label="Time in the charts">
        ${spans.map(([name, word]) => html`<button type="button" class="button quiet small" aria-pressed=${shown === name} onClick=${() => select(name)}>${word}</button>`)}
      </div>
    </div>
    <div class="charts">
      ${charts.map((chart) => html`<${HourChart} key=${chart.title} ...${chart} pointed=${pointed} onPoint=${setPointed} />`)}
    </div>
    <details>
      <summary>As a table</summary>
      <${Table} caption=${span.caption} columns=${columns} rows=${figuresIn(span).toReversed()} keyOf=${({ at }: HourMinute) => at} />
    </details>
  </section>`;
}

type SpanChart = Pick<
  ChartProps,
  'title' | 'summary' | 'styles' | 'columns' | 'ticks' | 'tickText' | 'textOf' | 'isNamed'
> & {
  /** Names of the series, if there are several. */
  readonly legend?: readonly (readonly [style: string, name: string])[];
};

function figuresIn({ places }: ChartSpan): HourMinute[] {
  return places.flatMap(({ figures }) => figures ?? []);
}

/** Returns the columns of a chart. Steps before the start of the service have no value. */
function chartColumns(
  { places }: ChartSpan,
  valuesOf: (figures: HourMinute) => readonly number[] | null,
): ChartColumn[] {
  return places.map(({ at, figures }) => ({ label: hourText(at), values: figures && valuesOf(figures) }));
}

const notThere = 'before the start';

function requestChart(span: ChartSpan): SpanChart {
  const { requests, maxRequests } = hourFigures(figuresIn(span));
  return {
    title: `Requests ${span.inStep}`,
    summary:
      requests === 0 ? 'None yet' : `${plural(requests, 'request')}, at most ${countText(maxRequests)} ${span.inStep}`,
    styles: ['usual'],
    columns: chartColumns(span, (minute) => [minute.requests]),
    ticks: countTicks(maxRequests),
    tickText: countText,
    textOf: ({ values }) => (values === null ? notThere : plural(values[0] ?? 0, 'request')),
    isNamed: span.isNamed,
  };
}

function errorChart(span: ChartSpan): SpanChart {
  const { errors, failedJobs, refused, maxWrong } = hourFigures(figuresIn(span));
  return {
    title: `Errors ${span.inStep}`,
    // Short enough for one line: the chart must not move when the user selects a minute.
    summary: `${plural(errors, 'error')}, ${plural(failedJobs, 'failed job')}, ${countText(refused)} refused`,
    styles: ['refused', 'wrong'],
    legend: [
      ['wrong', 'errors'],
      ['refused', 'refused'],
    ],
    columns: chartColumns(span, (minute) => [minute.errors + minute.refused, minute.errors]),
    ticks: countTicks(maxWrong),
    tickText: countText,
    textOf: ({ values }) => wrongText(values),
    isNamed: span.isNamed,
  };
}

function timeChart(span: ChartSpan): SpanChart {
  const { jobs, maxP95, maxP50 } = hourFigures(figuresIn(span));
  return {
    title: 'Job duration',
    summary:
      jobs === 0
        ? 'No job has ended'
        : `${plural(jobs, 'job')}, p50 up to ${durationText(maxP50)}, p95 up to ${durationText(maxP95)}`,
    styles: ['soft', 'usual'],
    legend: [
      ['usual', 'p50'],
      ['soft', 'p95'],
    ],
    columns: chartColumns(span, ({ job_ms: ms }) => ms && [ms.p95, ms.p50]),
    ticks: durationTicks(maxP95),
    tickText: durationTickText,
    textOf: ({ values }) => timesText(values),
    isNamed: span.isNamed,
  };
}

function wrongText(values: ChartColumn['values']): string {
  if (values === null) return notThere;
  const [all = 0, errors = 0] = values;
  return `${plural(errors, 'error')}, ${countText(all - errors)} refused`;
}

function timesText(values: ChartColumn['values']): string {
  const [p95, p50] = values ?? [];
  if (p95 === undefined || p50 === undefined) return 'no job has ended';
  return `p50 ${durationText(p50)}, p95 ${durationText(p95)}`;
}

function HourChart({ legend, ...chart }: SpanChart & Pick<ChartProps, 'pointed' | 'onPoint'>) {
  const { title, summary, columns, pointed, textOf } = chart;
  const column = pointed === null ? undefined : columns[pointed];
  return html`<figure>
    <figcaption>
      <h3>
        ${title}
        ${legend?.map(([style, name]) => html`<small class="legend"><span class="swatch ${style}" />${name}</small>`)}
      </h3>
      <small class="muted figure">${column === undefined ? summary : `${column.label}: ${textOf(column)}`}</small>
    </figcaption>
    <${ColumnChart} ...${chart} />
  </figure>`;
}

const columns: readonly Column<HourMinute>[] = [
  { title: 'From', cell: ({ at }) => hourText(at) },
  { title: 'Requests', isNumber: true, cell: ({ requests }) => countText(requests) },
  { title: 'Errors', isNumber: true, cell: ({ errors }) => countText(errors) },
  { title: 'Jobs', isNumber: true, cell: ({ jobs }) => countText(jobs) },
  { title: 'Failed jobs', isNumber: true, cell: ({ failed_jobs: failed }) => countText(failed) },
  { title: 'Refused', isNumber: true, cell: ({ refused }) => countText(refused) },
  { title: 'p50', isNumber: true, cell: ({ job_ms: ms }) => (ms === null ? '–' : durationText(ms.p50)) },
  { title: 'p95', isNumber: true, cell: ({ job_ms: ms }) => (ms === null ? '–' : durationText(ms.p95)) },
];
