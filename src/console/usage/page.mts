import { html } from 'htm/preact';
import type { SetupReport } from '../../shared/api/setup.js';
import type { BudgetUse, UsageReport, UsageRow } from '../../shared/api/usage.js';
import { type Load, useLoad, useParts } from '../base/context.mjs';
import { ApiError } from '../base/failures.mjs';
import { costText, countText } from '../base/format.mjs';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { EmptyState, ErrorNotice } from '../ui/notices.mjs';
import { type SortableColumn, SortableTable } from '../ui/tables.mjs';
import { DayChart, dayText } from './day-chart.mjs';
import {
  byClient,
  byDay,
  type ClientUsage,
  type DayUsage,
  lastDays,
  secondsText,
  sumOf,
  type UsageSum,
  usageColumns,
} from './usage-figures.mjs';

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
export function Totals({ sum }: { readonly sum: UsageSum }) {
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
