import type { UsageRow } from '../../shared/api/usage.js';
import { costText, countText, durationText } from '../base/format.mjs';
import type { SortableColumn } from '../ui/tables.mjs';

/** Sum of rows of the usage. */
export interface UsageSum {
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

export interface ClientUsage extends UsageSum {
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

export interface DayUsage extends UsageSum {
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

export function secondsText(seconds: number): string {
  return durationText(1000 * seconds);
}

/** Columns for every figure of the usage. */
export const usageColumns: readonly SortableColumn<UsageSum>[] = [
  numberColumn('Jobs', ({ jobs }) => jobs),
  numberColumn('Failed', ({ failed }) => failed),
  numberColumn('Refused', ({ refused }) => refused),
  numberColumn('Tokens in', ({ input }) => input),
  numberColumn('Tokens out', ({ output }) => output),
  numberColumn('Cost', ({ cost }) => cost, costText),
  numberColumn('Model time', ({ seconds }) => seconds, secondsText),
];
