import { isAddedUsage, readClientId } from '../../shared/client.js';
import { outcomes } from '../../shared/job.js';
import { type UsageFigure, usageFigures } from '../../shared/tables/usage-figures.js';
import { addUsage, monthOf, type Period, type UsageDelta, type UsageQuery } from '../stores/contract/usage.js';
import { defaultGroups, type UsageGroup, type UsageRow, usageFields } from './report-form.js';

export const noJobs = Object.fromEntries(outcomes.map((outcome) => [outcome, 0])) as UsageDelta['jobs'];

/** Period and groups of a report. Without groups, it is by day and client. */
export interface ReportOrder extends Period {
  readonly groups?: readonly UsageGroup[];
  /** Whether the usage of groups of people is included, which is also in the usage of the people. */
  readonly hasGroupUsage?: true;
}

/** Returns what a report needs from the store. Without the group `day`, days that are only stored by month count too. */
export function queryOf({ since, until, groups = defaultGroups }: ReportOrder): UsageQuery {
  const isByModel = groups.includes('model') || groups.includes('account');
  return { since, until, isByModel, hasMonths: !groups.includes('day') };
}

/** Sums up usage by the groups, sorted by them. */
export function reportOf(rows: Iterable<UsageDelta>, order: ReportOrder): UsageRow[] {
  const { groups = defaultGroups, hasGroupUsage = false } = order;
  const sums = new Map<string, UsageDelta>();
  for (const row of rows) {
    if (!hasGroupUsage && isAddedUsage(row.client)) continue;
    const key = JSON.stringify(groups.map((group) => (group === 'month' ? monthOf(row.day) : row[group])));
    const before = sums.get(key);
    sums.set(key, before === undefined ? row : addUsage(before, row));
  }
  const report = [...sums.values()].map((row) => rowOf(row, groups));
  return report.sort((a, b) => compare(a, b, groups));
}

function compare(a: UsageRow, b: UsageRow, groups: readonly UsageGroup[]): number {
  for (const group of groups) {
    const [one, other] = [a[group] ?? '', b[group] ?? ''];
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

function rowOf(row: UsageDelta, groups: readonly UsageGroup[]): UsageRow {
  const { kind, name } = readClientId(row.client);
  const heads = {
    month: { month: monthOf(row.day) },
    day: { day: row.day },
    client: { client: name, kind },
    model: { model: row.model || null },
    account: { account: row.account || null },
  } as const;
  return {
    ...Object.assign({}, ...groups.map((group) => heads[group])),
    jobs: { ...noJobs, ...row.jobs },
    ...usageFields((name) => shownAmount(name, row[name])),
  };
}

/** Returns an amount in the unit of reports. Sums of fractions are inexact. */
function shownAmount(name: UsageFigure, amount: number | null): number | null {
  const { unit } = usageFigures[name];
  if (unit === 'count' || amount === null) return amount;
  return unit === 'usd' ? Math.round(1e9 * amount) / 1e9 : Math.round(amount) / 1000;
}
