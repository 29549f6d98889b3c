import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { SetupReport } from '../../shared/api/setup.js';
import type { BudgetUse, UsageReport, UsageRow } from '../../shared/api/usage.js';
import { type Load, useLoad, useParts } from '../base/context.mjs';
import { ApiError } from '../base/failures.mjs';
import { costText, countText, durationText, plural } from '../base/format.mjs';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { type ChartColumn, ColumnChart } from '../ui/column-chart.mjs';
import { EmptyState, ErrorNotice } from '../ui/notices.mjs';
import { countTicks, durationTicks, durationTickText, type Ticks } from '../ui/scale.mjs';
import { type SortableColumn, SortableTable } from '../ui/tables.mjs';

const choices = [7, 30, 90] as const;

/** Shows how much each client has used, day by day. */
export function UsagePage({ params }: PageProps) {
  const { clock } = useParts();
  const count = choices.find((choice) => String(choice) === params.days) ?? choices[0];
  const days = lastDays(clock.now(), count);
  const [usage, reload] = useLoad<UsageReport>(`/usage?since=${days[0]}`);
  const [setup] = useLoad<SetupReport>('/setup');
  // The page shows the usage and the set-up at the same time: a later part would move the earlier one.
  const isRead = usage.state !== 'loading' && setup.state !== 'loading';
  return html`
    <div class="row between">
      <h1>Usage</h1>
      <nav class="row choices" aria-label="Days">
        ${choices.map(
          (choice) =>
            html`<a class="button quiet small" href=${hrefOf('usage', { days: String(choice) })} aria-current=${choice === count ? 'true' : undefined}>${choice} days</a>`,
        )}
      </nav>
    </div>
    ${isRead && html`<p class="muted">${noteOf(setup)} Days are in UTC.</p>`}
    ${!isRead && html`<p class="muted row"><span class="spinner" />Reading the usage</p>`}
    ${isRead && usage.state === 'failed' && html`<${ErrorNotice} error=${usage.error} onRetry=${reload} />`}
    ${isRead && usage.state === 'ready' && html`<${BudgetBoard} budgets=${usage.value.budgets ?? []} />`}
    ${isRead && usage.state === 'ready' && html`<${UsageBoard} rows=${usage.value.usage} days=${days} />`}
  `;
}

const budgetColumns: readonly SortableColumn<BudgetUse>[] = [
  { title: 'Key', cell: ({ client }) => client, key: ({ client }) => client },
  { title: 'Tokens', cell: ({ tokens }) => amountText(tokens, countText), key: ({ tokens }) => tokens?.used ?? 0 },
  {
    title: 'Cost',
    cell: ({ cost_usd: cost }) => amountText(cost, costText),
    key: ({ cost_usd: cost }) => cost?.used ?? 0,
  },
];

function amountText(amount: BudgetUse['tokens'], textOf: (value: number) => string): string {
  return amount === null ? 'no limit' : `${textOf(amount.used)} of ${textOf(amount.max)}`;
}

/** Shows the daily budgets; nothing if no key has one. */
function BudgetBoard({ budgets }: { readonly budgets: readonly BudgetUse[] }) {
  if (budgets.length === 0) return null;
  return html`
    <h2>Budgets of today</h2>
    <${SortableTable} caption="Budgets of today (UTC)" columns=${budgetColumns} rows=${budgets} keyOf=${({ client }: BudgetUse) => client} sortedBy=${0} />
  `;
}

/** Columns for every figure of the usage. */
const usageColumns: readonly SortableColumn<UsageSum>[] = [
  numberColumn('Jobs', ({ jobs }) => jobs),
  numberColumn('Failed', ({ failed }) => failed),
  numberColumn('Refused', ({ refused }) => refused),
  numberColumn('Tokens in', ({ input }) => input),
  numberColumn('Tokens out', ({ output }) => output),
  numberColumn('Cost', ({ cost }) => cost, costText),
  numberColumn('Model time', ({ seconds }) => seconds, secondsText),
];

const clientColumns: readonly SortableColumn<ClientUsage>[] = [
  {
    title: 'Client',
    cell: ({ client, kind }) => html`${client} ${kind !== 'other' && html`<small class="muted">${kind}</small>`}`,
    key: ({ client }) => client,
  },
  ...usageColumns,
];

const dayColumns: readonly SortableColumn<DayUsage>[] = [
  { title: 'Day', cell: ({ day }) => dayText(day), key: ({ day }) => day },
  ...usageColumns,
];

interface BoardProps {
  readonly rows: readonly UsageRow[];
  readonly days: readonly string[];
}

function UsageBoard({ rows, days }: BoardProps) {
  if (rows.length === 0) {
    return html`<${EmptyState} title="Nothing was used">
      <p>Jobs of the last ${days.length} days appear here, by client and day.</p>
    <//>`;
  }
  const sum = sumOf(rows);
  const each = byDay(rows, days);
  const total: ClientUsage = { client: 'All', kind: 'other', ...sum };
  return html`
    <${Totals} sum=${sum} />
    <${DayChart} days=${each} />
    <h2>By client</h2>
    <${SortableTable}
      caption="Usage by client"
      columns=${clientColumns}
      rows=${byClient(rows)}
      keyOf=${({ kind, client }: ClientUsage) => `${kind} ${client}`}
      sortedBy=${1}
      total=${total}
    />
    <details>
      <summary>Day by day</summary>
      <${SortableTable} caption="Usage by day" columns=${dayColumns} rows=${each.toReversed()} keyOf=${({ day }: DayUsage) => day} sortedBy=${-1} />
    </details>
  `;
}

/** Shows the sums of all days. */
function Totals({ sum }: { readonly sum: UsageSum }) {
  const { jobs, failed, refused, input, output, cost, seconds } = sum;
  const tiles = [
    ['Jobs', countText(jobs), `${countText(failed)} failed, ${countText(refused)} refused`],
    ['Tokens', countText(input + output), `${countText(input)} in, ${countText(output)} out`],
    [
      'Cost',
      cost === null ? '–' : costText(cost),
      cost === null ? 'the model CLI reports none' : 'as the model CLI reports',
    ],
    ['Model time', secondsText(seconds), 'in which jobs had a slot'],
  ] as const;
  return html`<dl class="tiles">
    ${tiles.map(
      ([name, value, note]) => html`<div class="card">
        <dt>${name}</dt>
        <dd><strong class="figure">${value}</strong><small class="muted figure">${note}</small></dd>
      </div>`,
    )}
  </dl>`;
}

/** Describes whose usage this is. A client that may read the set-up sees the usage of all clients. */
function noteOf(setup: Load<SetupReport>): string {
  if (setup.state === 'loading') return '';
  if (setup.state === 'failed') {
    const isForbidden = setup.error instanceof ApiError && setup.error.status === 403;
    return isForbidden ? 'Your own usage. A key with the scope admin shows all clients.' : '';
  }
  return setup.value.needs_key
    ? 'Usage of all clients.'
    : 'Your own usage. Only a key with the scope admin shows all clients, and no key is configured.';
}

/** Sum of rows of the usage. */
interface UsageSum {
  readonly jobs: number;
  /** Jobs with an outcome other than `ok` and `cancelled`. */
  readonly failed: number;
  readonly refused: number;
  readonly input: number;
  readonly output: number;
  /** Cost in dollars; null if no row has a cost. */
  readonly cost: number | null;
  readonly seconds: number;
}

const nothing: UsageSum = { jobs: 0, failed: 0, refused: 0, input: 0, output: 0, cost: null, seconds: 0 };

export function sumOf(rows: readonly UsageRow[]): UsageSum {
  return rows.reduce(plus, nothing);
}

function plus(sum: UsageSum, row: UsageRow): UsageSum {
  const { jobs, refused, tokens, cost_usd: cost, model_seconds: seconds } = row;
  const all = Object.values(jobs).reduce((count, ended) => count + ended, 0);
  return {
    jobs: sum.jobs + all,
    failed: sum.failed + all - (jobs.ok ?? 0) - (jobs.cancelled ?? 0),
    refused: sum.refused + refused,
    input: sum.input + tokens.input,
    output: sum.output + tokens.output,
    cost: cost === null ? sum.cost : (sum.cost ?? 0) + cost,
    seconds: sum.seconds + seconds,
  };
}

interface ClientUsage extends UsageSum {
  readonly client: string;
  readonly kind: UsageRow['kind'];
}

/** Sums up the rows of each client. A key, a user and an address of the same name are three clients. */
export function byClient(rows: readonly UsageRow[]): ClientUsage[] {
  const groups = new Map<string, ClientUsage>();
  for (const row of rows) {
    const { client, kind } = row;
    const name = `${kind} ${client}`;
    groups.set(name, { client, kind, ...plus(groups.get(name) ?? nothing, row) });
  }
  return [...groups.values()];
}

interface DayUsage extends UsageSum {
  readonly day: string;
}

/** Returns one entry for each of these days, also if nothing was used. */
export function byDay(rows: readonly UsageRow[], days: readonly string[]): DayUsage[] {
  return days.map((day) => ({ day, ...sumOf(rows.filter((row) => row.day === day)) }));
}

const dayMs = 86_400_000;

/** Returns the last days in UTC, oldest first; the day of `nowMs` is the last. */
export function lastDays(nowMs: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) =>
    new Date(nowMs - (count - 1 - index) * dayMs).toISOString().slice(0, 10),
  );
}

function numberColumn(
  title: string,
  key: (sum: UsageSum) => number | null,
  text: (value: number) => string = countText,
): SortableColumn<UsageSum> {
  const cell = (sum: UsageSum) => {
    const value = key(sum);
    return value === null ? '–' : text(value);
  };
  return { title, isNumber: true, cell, key: (sum) => key(sum) ?? -1 };
}

function secondsText(seconds: number): string {
  return durationText(1000 * seconds);
}

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
    valuesOf: ({ input, output }) => [input + output, output],
    ticks: countTicks,
    tickText: (value) => value.toLocaleString('en', { notation: 'compact' }),
    textOf: (all = 0, output = 0) => `${countText(all - output)} tokens in, ${countText(output)} out`,
    styles: ['soft', 'usual'],
  },
  {
    name: 'Cost',
    valuesOf: ({ cost }) => [cost ?? 0],
    ticks: centTicks,
    tickText: (value) => `$${value}`,
    textOf: (cost = 0) => costText(cost),
    styles: ['usual'],
  },
  {
    name: 'Model time',
    valuesOf: ({ seconds }) => [1000 * seconds],
    ticks: durationTicks,
    tickText: durationTickText,
    textOf: (ms = 0) => secondsText(ms / 1000),
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

/** Shows a column for each day. The user selects the measure. */
function DayChart({ days }: { readonly days: readonly DayUsage[] }) {
  const [name, setName] = useState('Jobs');
  const [pointed, setPointed] = useState<number | null>(null);
  const measure = measures.find((candidate) => candidate.name === name) ?? measures[0];
  const columns = days.map((day): ChartColumn => ({ label: dayText(day.day), values: measure.valuesOf(day) }));
  const textOf = ({ values }: ChartColumn) => measure.textOf(...(values ?? []));
  const shown = pointed === null ? undefined : columns[pointed];
  const each = days.length <= 7 ? 1 : Math.ceil(days.length / 5);
  return html`<figure class="card">
    <figcaption class="row between">
      <h2 class="row">
        <span>${measure.name} a day</span>
        ${legends[name]?.map(([style, part]) => html`<small class="legend"><span class="swatch ${style}" />${part}</small>`)}
      </h2>
      <small class="muted figure">${shown && `${shown.label}: ${textOf(shown)}`}</small>
      <select class="narrow" aria-label="What the columns show" value=${name} onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => setName(currentTarget.value)}>
        ${measures.map((option) => html`<option key=${option.name}>${option.name}</option>`)}
      </select>
    </figcaption>
    <${ColumnChart}
      title=${`${measure.name} a day`}
      summary=${`${days.length} days; the tables below have the figures`}
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

/** Formats a day: `3 Mar`. */
function dayText(day: string): string {
  return new Date(day).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
}
