import type { UsageReport, UsageRow } from '../../shared/api/usage.js';
import { useParts } from '../context.mjs';
import type { PageProps } from '../pages.mjs';
import { hrefOf } from '../router.mjs';
import { EmptyState } from '../ui/empty-state.mjs';
import { ErrorNotice } from '../ui/error-notice.mjs';
import { html } from '../ui/html.mjs';
import { type SortableColumn, SortableTable } from '../ui/sortable-table.mjs';
import { DayChart, dayText } from '../usage/day-chart.mjs';
import { ScopeNote } from '../usage/scope-note.mjs';
import { Totals } from '../usage/totals.mjs';
import { usageColumns } from '../usage/usage-columns.mjs';
import { byClient, byDay, type ClientUsage, type DayUsage, lastDays, sumOf } from '../usage/usage-figures.mjs';
import { useLoad } from '../use-load.mjs';

const choices = [7, 30, 90] as const;

/** Who has used how much, day by day. */
export function UsagePage({ params }: PageProps) {
  const { clock } = useParts();
  const count = choices.find((choice) => String(choice) === params.days) ?? choices[0];
  const days = lastDays(clock.now(), count);
  const [usage, reload] = useLoad<UsageReport>(`/usage?since=${days[0]}`);
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
    <${ScopeNote} />
    ${usage.state === 'loading' && html`<p class="muted row"><span class="spinner" />Reading the usage</p>`}
    ${usage.state === 'failed' && html`<${ErrorNotice} error=${usage.error} onRetry=${reload} />`}
    ${usage.state === 'ready' && html`<${UsageBoard} rows=${usage.value.usage} days=${days} />`}
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
      <p>Jobs of the last ${days.length} days would stand here, by client and day.</p>
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
