import {
  defaultGroups,
  figureIn,
  groupsForm,
  type LimitAmount,
  type LimitUse,
  monthQuery,
  periodForm,
  readGroups,
  readPeriodDay,
  type UsageGroup,
  type UsageReport,
  type UsageRow,
  usageGroups,
  usageReport,
} from '../../shared/api/usage.js';
import { jobCounts, usageCsv } from '../../shared/api/usage-csv.js';
import { usageFigureNames, usageFigures } from '../../shared/tables/usage-figures.js';
import { formatDuration, formatNumber } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import { alignColumns } from '../base/columns.js';
import { addressFlags, type Command, type CommandArguments, clientFor, jsonFlag, show } from '../base/command.js';
import { exitCodes, usageError } from '../base/errors.js';

export const usage: Command = {
  name: 'usage',
  synopsis: '',
  summary: 'show the usage by client, model, account, day or month',
  flags: {
    by: {
      type: 'string',
      placeholder: '<groups>',
      description: `sum up by one or more of ${usageGroups.join(', ')}, separated by commas; default: day,client, with --month month,client`,
    },
    month: { type: 'string', placeholder: '<month>', description: 'only this month in UTC, such as 2026-01' },
    since: {
      type: 'string',
      placeholder: '<day>',
      description: 'first day or month in UTC, such as 2026-01-31; default: all',
    },
    until: { type: 'string', placeholder: '<day>', description: 'last day or month in UTC; default: today' },
    csv: { type: 'boolean', description: 'print CSV' },
    ...jsonFlag,
    ...addressFlags,
  },
  maxPositionals: 0,
  notes: ['Without the scope admin, only your own usage is shown.'],
  examples: [
    'prompt-relay usage',
    'prompt-relay usage --since 2026-01-01 --until 2026-01-31 --json',
    'prompt-relay usage --by client,model --month 2026-01 --csv > january.csv',
  ],
  run: async (args, context) => {
    if (args.has('csv') && args.has('json')) throw usageError('usage', 'use --csv or --json, not both');
    const groups = groupsOf(args);
    const group = groups === defaultGroups ? {} : { group: groups.join(',') };
    const period = periodOf(args);
    const query = new URLSearchParams({ ...group, ...period });
    const path = query.size === 0 ? '/usage' : `/usage?${query}`;
    const report = await (await clientFor(args, context)).getState(path, usageReport);
    const nothing = Object.keys(period).length === 0 ? 'No jobs yet.' : 'No jobs in this period.';
    const render = (paint: Paint) => renderUsage(report, groups, nothing, paint);
    if (!args.has('csv')) return show(args, context.terminal, report, render);
    await context.terminal.writeUntrusted(usageCsv(report.usage, groups));
    return exitCodes.ok;
  },
};

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
