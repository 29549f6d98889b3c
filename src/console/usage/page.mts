import { html } from 'htm/preact';
import type { LimitUse } from '../../shared/api/limit-use.js';
import type { SetupReport } from '../../shared/api/setup.js';
import { type Load, useAction, useLoad, useParts } from '../base/context.mjs';
import { ApiError } from '../base/failures.mjs';
import { costText, countText, durationText } from '../base/format.mjs';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { saveFile } from '../base/save-file.mjs';
import { usageFigures } from '../base/tables.mjs';
import { CourseLinks } from '../courses/links.mjs';
import { EmptyState, ErrorNotice } from '../ui/notices.mjs';
import { type SortableColumn, SortableTable } from '../ui/tables.mjs';
import { TimeChart, timeText } from './chart.mjs';
import {
  byGroup,
  byTime,
  figureNames,
  type GroupUsage,
  lastMonths,
  type NameGroup,
  periodOf,
  type ReportRow,
  type ShownPeriod,
  storedMonths,
  sumOf,
  type TimeUsage,
  type UsageSum,
} from './sums.mjs';

/** Periods with a link; each month has an option. */
const periods = [
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['all', '24 months'],
] as const;

interface UsageOfPeriod {
  readonly usage: readonly ReportRow[];
  readonly budgets?: readonly LimitUse[];
}

interface Grouping {
  readonly id: string;
  readonly title: string;
  readonly groups: readonly NameGroup[];
}

const groupings: readonly [Grouping, ...Grouping[]] = [
  { id: 'client', title: 'client', groups: ['client'] },
  { id: 'model', title: 'model', groups: ['model'] },
  { id: 'account', title: 'account', groups: ['account'] },
  { id: 'client-model', title: 'client and model', groups: ['client', 'model'] },
];

interface Choices {
  /** Period as in `periodOf`. */
  readonly period: string;
  readonly grouping: Grouping;
}

/** Returns the choices in the address of the page. */
function choicesOf({ period: named, days, by }: PageProps['params'], months: readonly string[]): Choices {
  const wanted = named ?? days ?? '';
  const isKnown = periods.some(([id]) => id === wanted) || months.includes(wanted);
  return { period: isKnown ? wanted : '7', grouping: groupings.find(({ id }) => id === by) ?? groupings[0] };
}

/** Shows what was used: by client, model or account, and by day or month. */
export function UsagePage({ params }: PageProps) {
  const { clock } = useParts();
  const now = clock.now();
  const months = lastMonths(now, storedMonths);
  const choices = choicesOf(params, months);
  const [setup] = useLoad<SetupReport>('/setup');
  const period = periodOf(choices.period, now);
  const query = `from=${period.from}&to=${period.to}`;
  return html`
    <h1>Usage</h1>
    <${Chooser} choices=${choices} months=${months} query=${query} />
    <${UsageView} key=${`${choices.grouping.id} ${query}`} choices=${choices} period=${period} query=${query} setup=${setup} />
    <${CourseLinks} />
  `;
}

interface ChooserProps {
  readonly choices: Choices;
  readonly months: readonly string[];
  readonly query: string;
}

/** Lets the user choose the period and the groups, and save the table as CSV. */
function Chooser({ choices, months, query }: ChooserProps) {
  const { api, clock } = useParts();
  const { run, isRunning, failure } = useAction();
  const { period, grouping } = choices;
  const addressOf = (more: Readonly<Record<string, string>>) => hrefOf('usage', { period, by: grouping.id, ...more });
  const go = (more: Readonly<Record<string, string>>) => {
    location.hash = addressOf(more);
  };
  const isMonth = months.includes(period);
  const save = () => {
    const unit = isMonth || period === 'all' ? 'month' : 'day';
    const path = `/usage?group=${[unit, ...grouping.groups].join(',')}&${query}`;
    const name = `usage-${isMonth ? period : period === 'all' ? '24-months' : `${period}-days`}.csv`;
    run(api.text(path, { accept: 'text/csv' }), (text) => saveFile(name, 'text/csv', text, clock));
  };
  return html`
    <div class="row between">
      <nav class="row choices" aria-label="Period">
        ${periods.map(
          ([id, title]) =>
            html`<a class="button quiet small" href=${addressOf({ period: id })} aria-current=${id === period ? 'true' : undefined}>${title}</a>`,
        )}
      </nav>
      <div class="row">
        <select class="narrow" aria-label="Month" value=${isMonth ? period : ''} onChange=${({ currentTarget }: Changed) => go({ period: currentTarget.value })}>
          ${!isMonth && html`<option value="">Choose a month</option>`}
          ${months.toReversed().map((month) => html`<option key=${month} value=${month}>${timeText(month)}</option>`)}
        </select>
        <select class="narrow" aria-label="Group by" value=${grouping.id} onChange=${({ currentTarget }: Changed) => go({ by: currentTarget.value })}>
          ${groupings.map(({ id, title }) => html`<option key=${id} value=${id}>By ${title}</option>`)}
        </select>
        <button type="button" class="button small" disabled=${isRunning} onClick=${save}>Save as CSV</button>
      </div>
    </div>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
  `;
}

interface Changed {
  readonly currentTarget: HTMLSelectElement;
}

interface ViewProps {
  readonly choices: Choices;
  readonly period: ShownPeriod;
  readonly query: string;
  readonly setup: Load<SetupReport>;
}

/** Shows the usage of a period. */
function UsageView({ choices, period, query, setup }: ViewProps) {
  const { groups } = choices.grouping;
  const [usage, reload] = useLoad<UsageOfPeriod>(`/usage?group=${[period.unit, ...groups].join(',')}&${query}`);
  // The page shows the usage and the set-up at the same time: a later part would move the earlier one.
  const isRead = usage.state !== 'loading' && setup.state !== 'loading';
  return html`
    ${isRead && html`<p class="muted">${noteOf(setup)} Days and months are in UTC.</p>`}
    ${!isRead && html`<p class="muted row"><span class="spinner" />Reading the usage</p>`}
    ${isRead && usage.state === 'failed' && html`<${ErrorNotice} error=${usage.error} onRetry=${reload} />`}
    ${isRead && usage.state === 'ready' && html`<${BudgetBoard} budgets=${usage.value.budgets ?? []} />`}
    ${isRead && usage.state === 'ready' && html`<${UsageBoard} rows=${usage.value.usage} period=${period} grouping=${choices.grouping} />`}
  `;
}

const budgetColumns: readonly SortableColumn<LimitUse>[] = [
  { title: 'Budget of', cell: holderCell, key: ({ client, model = '' }) => `${client} ${model}` },
  { title: 'Tokens', cell: ({ tokens }) => amountCell(tokens, countText), key: ({ tokens }) => tokens?.used ?? 0 },
  {
    title: 'Cost',
    cell: ({ cost_usd: cost }) => amountCell(cost, costText),
    key: ({ cost_usd: cost }) => cost?.used ?? 0,
  },
];

/** Shows whose budget it is, and for which model: a name that begins with @ is a group, or `@*` the whole service. */
function holderCell({ client, model }: LimitUse) {
  const owner = client === '@*' ? ['the whole service'] : client.startsWith('@') ? ['group'] : [];
  const note = [...owner, ...(model === undefined ? [] : [`only ${model}`])].join(', ');
  return html`${client} ${note && html`<small class="muted">${note}</small>`}`;
}

function amountCell(amount: LimitUse['tokens'], textOf: (value: number) => string) {
  if (amount === null) return 'no limit';
  const { used, max, period } = amount;
  const text = `${textOf(used)} of ${textOf(max)} a ${period}`;
  return used < max ? text : html`${text} <small class="fault">used up</small>`;
}

/** Shows the budgets of the caller. Without a budget, the page has no such part. */
function BudgetBoard({ budgets }: { readonly budgets: readonly LimitUse[] }) {
  if (budgets.length === 0) return null;
  return html`
    <h2>Budgets</h2>
    <${SortableTable} caption="Budgets of this day, week or month (UTC)" columns=${budgetColumns} rows=${budgets} keyOf=${({ kind, client, model = '' }: LimitUse) => `${kind} ${client} ${model}`} sortedBy=${0} />
  `;
}

const unitTexts = { count: countText, usd: costText, time: durationText } as const;

/** Columns for every figure of the usage. */
const usageColumns: readonly SortableColumn<UsageSum>[] = [
  numberColumn('Jobs', ({ jobs }) => jobs),
  numberColumn('Failed', ({ failed }) => failed),
  ...figureNames.map((name) => {
    const { title, unit } = usageFigures[name];
    return numberColumn(title.charAt(0).toUpperCase() + title.slice(1), (sum) => sum[name], unitTexts[unit]);
  }),
];

const groupTitles: Readonly<Record<NameGroup, string>> = { client: 'Client', model: 'Model', account: 'Account' };
const unknownNames: Readonly<Record<NameGroup, string>> = { client: '–', model: 'unknown', account: 'unnamed' };

function columnOf(group: NameGroup, index: number): SortableColumn<GroupUsage> {
  const nameOf = ({ names }: GroupUsage) => names[index] ?? unknownNames[group];
  const hasKind = (kind: GroupUsage['kind']) => group === 'client' && kind !== 'other';
  return {
    title: groupTitles[group],
    cell: (row) => html`${nameOf(row)} ${hasKind(row.kind) && html`<small class="muted">${row.kind}</small>`}`,
    key: nameOf,
  };
}

function timeColumns(title: string): readonly SortableColumn<TimeUsage>[] {
  return [{ title, cell: ({ at }) => timeText(at), key: ({ at }) => at }, ...usageColumns];
}

interface BoardProps {
  readonly rows: readonly ReportRow[];
  readonly period: ShownPeriod;
  readonly grouping: Grouping;
}

function UsageBoard({ rows, period: { unit, times }, grouping: { title, groups } }: BoardProps) {
  if (rows.length === 0) {
    return html`<${EmptyState} title="Nothing was used">
      <p>Jobs of this period appear here.</p>
    <//>`;
  }
  const sum = sumOf(rows);
  const each = byTime(rows, unit, times);
  const total: GroupUsage = { names: groups.map((_, index) => (index === 0 ? 'All' : '')), kind: 'other', ...sum };
  const dayOrMonth = unit === 'day' ? 'Day' : 'Month';
  return html`
    <${Totals} sum=${sum} />
    ${times.length > 1 && html`<${TimeChart} unit=${unit} times=${each} />`}
    <h2>By ${title}</h2>
    <${SortableTable}
      caption=${`Usage by ${title}`}
      columns=${[...groups.map(columnOf), ...usageColumns]}
      rows=${byGroup(rows, groups)}
      keyOf=${({ kind, names }: GroupUsage) => JSON.stringify([kind, names])}
      sortedBy=${groups.length}
      total=${total}
    />
    <details>
      <summary>${dayOrMonth} by ${unit}</summary>
      <${SortableTable} caption=${`Usage by ${unit}`} columns=${timeColumns(dayOrMonth)} rows=${each.toReversed()} keyOf=${({ at }: TimeUsage) => at} sortedBy=${-1} />
    </details>
  `;
}

/** Shows the sums of the whole period. */
function Totals({ sum }: { readonly sum: UsageSum }) {
  const { jobs, failed, refused, inputTokens: input, outputTokens: output, costUsd: cost, modelMs } = sum;
  const cache = `${countText(sum.cachedTokens)} cached, ${countText(sum.cacheWriteTokens)} cache write`;
  const tiles = [
    ['Jobs', countText(jobs), `${countText(failed)} failed, ${countText(refused)} refused`],
    ['Tokens', countText(input + output), `${countText(input)} in (${cache}), ${countText(output)} out`],
    [
      'Cost',
      cost === null ? '–' : costText(cost),
      cost === null ? 'the model CLI reports none' : 'as the model CLI reports',
    ],
    ['Model time', durationText(modelMs), 'total time jobs ran'],
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
    : 'Your own usage. To see all clients, configure an API key with the scope admin.';
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
