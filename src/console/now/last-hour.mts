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

type Minutes = StatusBody['last_hour'];

/** Shows requests, errors and job times of each minute. */
export function LastHour({ minutes }: { readonly minutes: Minutes }) {
  const [pointed, setPointed] = useState<number | null>(null);
  const charts = [requestChart(minutes), errorChart(minutes), timeChart(minutes)];
  return html`<section class="card" aria-labelledby="now-hour">
    <h2 id="now-hour">The last hour</h2>
    <div class="charts">
      ${charts.map((chart) => html`<${HourChart} key=${chart.title} ...${chart} pointed=${pointed} onPoint=${setPointed} />`)}
    </div>
    <details>
      <summary>As a table</summary>
      <${Table} caption="The last hour, minute by minute" columns=${columns} rows=${minutes.toReversed()} keyOf=${({ at }: HourMinute) => at} />
    </details>
  </section>`;
}

type ChartOfMinutes = Pick<ChartProps, 'title' | 'summary' | 'styles' | 'columns' | 'ticks' | 'tickText' | 'textOf'> & {
  /** Names of the series, if there are several. */
  readonly legend?: readonly (readonly [style: string, name: string])[];
};

/** Returns the columns of an hour. Minutes before the start of the service have no value. */
function chartColumns(minutes: Minutes, valuesOf: (minute: HourMinute) => readonly number[] | null): ChartColumn[] {
  const before = minutesBefore(minutes).map((at) => ({ label: hourText(at), values: null }));
  return [...before, ...minutes.map((minute) => ({ label: hourText(minute.at), values: valuesOf(minute) }))];
}

const notThere = 'before the start';

function requestChart(minutes: Minutes): ChartOfMinutes {
  const { requests, maxRequests } = hourFigures(minutes);
  return {
    title: 'Requests a minute',
    summary:
      requests === 0 ? 'None yet' : `${plural(requests, 'request')}, at most ${countText(maxRequests)} in one minute`,
    styles: ['usual'],
    columns: chartColumns(minutes, (minute) => [minute.requests]),
    ticks: countTicks(maxRequests),
    tickText: countText,
    textOf: ({ values }) => (values === null ? notThere : plural(values[0] ?? 0, 'request')),
  };
}

function errorChart(minutes: Minutes): ChartOfMinutes {
  const { errors, failedJobs, refused, maxWrong } = hourFigures(minutes);
  return {
    title: 'Errors a minute',
    // Short enough for one line: the chart must not move when the user selects a minute.
    summary: `${plural(errors, 'error')}, ${plural(failedJobs, 'failed job')}, ${countText(refused)} refused`,
    styles: ['refused', 'wrong'],
    legend: [
      ['wrong', 'errors'],
      ['refused', 'refused'],
    ],
    columns: chartColumns(minutes, (minute) => [minute.errors + minute.refused, minute.errors]),
    ticks: countTicks(maxWrong),
    tickText: countText,
    textOf: ({ values }) => wrongText(values),
  };
}

function timeChart(minutes: Minutes): ChartOfMinutes {
  const { jobs, maxP95, maxP50 } = hourFigures(minutes);
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
    columns: chartColumns(minutes, ({ job_ms: ms }) => ms && [ms.p95, ms.p50]),
    ticks: durationTicks(maxP95),
    tickText: durationTickText,
    textOf: ({ values }) => timesText(values),
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

/** Whether the axis names the minute: each quarter of an hour. */
const isQuarter = ({ label }: ChartColumn) => /:(00|15|30|45)$/.test(label);

function HourChart({ legend, ...chart }: ChartOfMinutes & Pick<ChartProps, 'pointed' | 'onPoint'>) {
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
    <${ColumnChart} ...${chart} isNamed=${isQuarter} />
  </figure>`;
}

const columns: readonly Column<HourMinute>[] = [
  { title: 'Minute', cell: ({ at }) => hourText(at) },
  { title: 'Requests', isNumber: true, cell: ({ requests }) => countText(requests) },
  { title: 'Errors', isNumber: true, cell: ({ errors }) => countText(errors) },
  { title: 'Jobs', isNumber: true, cell: ({ jobs }) => countText(jobs) },
  { title: 'Failed jobs', isNumber: true, cell: ({ failed_jobs: failed }) => countText(failed) },
  { title: 'Refused', isNumber: true, cell: ({ refused }) => countText(refused) },
  { title: 'p50', isNumber: true, cell: ({ job_ms: ms }) => (ms === null ? '–' : durationText(ms.p50)) },
  { title: 'p95', isNumber: true, cell: ({ job_ms: ms }) => (ms === null ? '–' : durationText(ms.p95)) },
];
