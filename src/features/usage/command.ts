import { alignColumns } from '../../command/base/columns.js';
import {
  type CommandArguments,
  type CommandContext,
  clientFor,
  exitCodes,
  show,
  usageError,
} from '../../command/base/command.js';
import type { LimitAmount, LimitUse } from '../../shared/api/limit-use.js';
import { usageFigureNames, usageFigures } from '../../shared/tables/usage-figures.js';
import { formatDuration, formatNumber } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import { jobCounts, usageCsv } from './csv.js';
import {
  defaultGroups,
  figureIn,
  groupsForm,
  monthQuery,
  periodForm,
  readGroups,
  readPeriodDay,
  type UsageGroup,
  type UsageReport,
  type UsageRow,
  usageReport,
} from './report-form.js';
import { route } from './shared.js';

/** Prints the usage. Resolves with the exit code. */
export async function showUsage(args: CommandArguments, context: CommandContext): Promise<number> {
  if (args.has('csv') && args.has('json')) throw usageError('usage', 'use --csv or --json, not both');
  const groups = groupsOf(args);
  const group = groups === defaultGroups ? {} : { group: groups.join(',') };
  const period = periodOf(args);
  const query = new URLSearchParams({ ...group, ...period });
  const path = query.size === 0 ? route : `${route}?${query}`;
  const report = await (await clientFor(args, context)).getState(path, usageReport);
  const nothing = Object.keys(period).length === 0 ? 'No jobs yet.' : 'No jobs in this period.';
  const render = (paint: Paint) => renderUsage(report, groups, nothing, paint);
  if (!args.has('csv')) return show(args, context.terminal, report, render);
  await context.terminal.writeUntrusted(usageCsv(report.usage, groups));
  return exitCodes.ok;
}

function groupsOf(args: CommandArguments): readonly UsageGroup[] {
  const text = args.value('by') ?? (args.has('month') ? 'month,client' : undefined);
  const groups = text === undefined ? defaultGroups : readGroups(text);
  if (groups === null) throw usageError('usage', `--by: ${groupsForm}`);
  return groups;
}

/** Returns the ends of the period. They are sent under the names that earlier versions of the service know. */
function periodOf(args: CommandArguments): { since?: string; until?: string } {
  const [month, since, until] = ['month', 'since', 'until'].map((flag) => args.value(flag));
  if (month !== undefined) {
    if (since !== undefined || until !== undefined) throw usageError('usage', 'use --month or --since and --until');
    if (!monthQuery.safeParse(month).success) throw usageError('usage', '--month: must be a month such as 2026-01');
  }
  const [first, last] = [dayOf(month ?? since, 'since', 'first'), dayOf(month ?? until, 'until', 'last')];
  return { ...(first !== null && { since: first }), ...(last !== null && { until: last }) };
}

function dayOf(value: string | undefined, flag: string, end: 'first' | 'last'): string | null {
  if (value === undefined) return null;
  const day = readPeriodDay(value, end);
  if (day === null) throw usageError('usage', `--${flag}: ${periodForm}`);
  return day;
}

const figureTitles = ['jobs', 'failed', 'cancelled', ...usageFigureNames.map((name) => usageFigures[name].title)];

function renderUsage(
  { usage: rows, budgets = [] }: UsageReport,
  groups: readonly UsageGroup[],
  nothing: string,
  paint: Paint,
): string[] {
  const head = [...groups, ...figureTitles];
  const [heading = '', ...lines] = alignColumns([head, ...rows.map((row) => cellsOf(row, groups))]);
  const usageLines = rows.length === 0 ? [nothing] : [paint.dim(heading), ...lines];
  if (budgets.length === 0) return usageLines;
  const [budgetHeading = '', ...budgetLines] = alignColumns([
    ['budget', 'used', 'until'],
    ...budgets
      .map(withModel)
      .flatMap(({ client, tokens, cost_usd: cost }) => [
        ...(tokens === null
          ? []
          : [budgetCells(client, tokens, `${formatNumber(tokens.used)} of ${formatNumber(tokens.max)} tokens`)]),
        ...(cost === null ? [] : [budgetCells(client, cost, `$${cost.used.toFixed(2)} of $${cost.max}`)]),
      ]),
  ]);
  return [...usageLines, '', paint.dim(budgetHeading), ...budgetLines];
}

/** Names the model of a budget for one model with its owner. */
function withModel({ client, model, ...budget }: LimitUse): LimitUse {
  return { ...budget, client: model === undefined ? client : `${client} (${model})` };
}

function budgetCells(client: string, { period, resets_at: until }: LimitAmount, used: string): string[] {
  return [escaped(client), `${used} a ${period}`, escaped(until)];
}

/** Returns the cells of a row. Names come from the service, so their control characters are escaped. */
function cellsOf(row: UsageRow, groups: readonly UsageGroup[]): string[] {
  const { kind } = row;
  const names = groups.map((group) => (group === 'client' && kind === 'other' ? 'all others' : (row[group] ?? '–')));
  const { all, failed, cancelled } = jobCounts(row);
  return [
    ...names.map(escaped),
    ...[all, failed, cancelled].map(formatNumber),
    ...usageFigureNames.map((name) => figureCell(usageFigures[name].unit, figureIn(row, name))),
  ];
}

function figureCell(unit: 'count' | 'usd' | 'time', amount: number | null): string {
  if (amount === null) return '–';
  if (unit === 'usd') return `$${amount.toFixed(2)}`;
  return unit === 'time' ? formatDuration(amount * 1000) : formatNumber(amount);
}
