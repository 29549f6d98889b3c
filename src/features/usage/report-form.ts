import { z } from 'zod';
import { callerBody } from '../../shared/api/caller.js';
import { limitUse } from '../../shared/api/limit-use.js';
import { clientKinds } from '../../shared/client.js';
import { dayQuery } from '../../shared/config/key-values.js';
import { outcomes } from '../../shared/job.js';
import {
  type UsageFigure,
  type UsageFigureTable,
  usageFigureNames,
  usageFigures,
} from '../../shared/tables/usage-figures.js';
import { lastDayOf } from '../stores/contract/days.js';

const count = z.int().nonnegative();

/** Month in UTC, such as 2026-01. */
export const monthQuery = z.string().regex(/^\d{4}-(0[1-9]|1[0-2])$/);

/** Day or month at an end of a period. */
export const periodQuery = z.union([dayQuery, monthQuery]);
export const periodForm = 'must be one day such as 2026-01-31, or a month such as 2026-01';

/** Returns the day, or the first or last day of the month; null for any other text. */
export function readPeriodDay(text: string, end: 'first' | 'last'): string | null {
  if (dayQuery.safeParse(text).success) return text;
  if (!monthQuery.safeParse(text).success) return null;
  return end === 'first' ? `${text}-01` : lastDayOf(text);
}

/** Groups by which usage can be summed up, in the order of the columns of a report. */
export const usageGroups = ['month', 'day', 'client', 'model', 'account'] as const;
export type UsageGroup = (typeof usageGroups)[number];

/** Groups of a report without `group`. */
export const defaultGroups: readonly UsageGroup[] = ['day', 'client'];

/** Returns the groups that a text such as `client,month` names, in the order of the columns; null if it is wrong. */
export function readGroups(text: string): UsageGroup[] | null {
  const names = text.split(',').map((name) => name.trim());
  if (names.some((name) => !usageGroups.some((group) => group === name))) return null;
  return usageGroups.filter((group) => names.includes(group));
}

export const groupsForm = `must be one or more of ${usageGroups.join(', ')}, separated by commas`;

/** Fields of the figures of one group in a row, or of the row itself (null). */
type FigureFields<Group extends 'tokens' | null> = {
  [N in UsageFigure as UsageFigureTable[N]['group'] extends Group ? UsageFigureTable[N]['field'] : never]: z.ZodType<
    UsageFigureTable[N]['unit'] extends 'usd' ? number | null : number
  >;
};

const schemas = { count, usd: z.number().nonnegative().nullable(), time: z.number().nonnegative() } as const;

function schemasIn<Group extends 'tokens' | null>(group: Group): FigureFields<Group> {
  const names = usageFigureNames.filter((name) => usageFigures[name].group === group);
  const fields = names.map((name) => {
    const { field, unit, meaning } = usageFigures[name];
    const schema: z.ZodType = schemas[unit];
    return [field, meaning === '' ? schema : schema.meta({ description: meaning })];
  });
  return Object.fromEntries(fields) as FigureFields<Group>;
}

const usageRow = z
  .strictObject({
    month: z.string().optional().meta({ description: 'In UTC, such as `2026-01`. Only with the group `month`.' }),
    day: z.iso.date().optional().meta({ description: 'In UTC. Only with the group `day`.' }),
    client: z
      .string()
      .optional()
      .meta({ description: 'Name of the API key or local user, or the address. Only with the group `client`.' }),
    kind: z.enum(clientKinds).optional().meta({
      description: 'Only with the group `client`. `other` is the sum of all clients of a day beyond the limit.',
    }),
    model: z.string().nullable().optional().meta({
      description:
        'Model that answered; null for jobs for which none is known. `other` is the sum of the models of a client beyond the limit. Only with the group `model`.',
    }),
    account: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'Account of the model CLI; null if it has no name. Only with the group `account`.' }),
    jobs: z.record(z.enum(outcomes), count).meta({ description: 'Jobs that have ended on this day, by outcome.' }),
    ...schemasIn(null),
    tokens: z
      .strictObject(schemasIn('tokens'))
      .meta({ description: 'Tokens of all jobs, with any outcome. Estimated if the model CLI reports none.' }),
  })
  .meta({ id: 'UsageRow' });
export type UsageRow = z.infer<typeof usageRow>;
type RowHead = UsageGroup | 'kind' | 'jobs';

/** Returns the figures of a row. */
export function usageFields(amountOf: (figure: UsageFigure) => number | null): Omit<UsageRow, RowHead> {
  const tokens: Record<string, number | null> = {};
  const row: Record<string, unknown> = {};
  for (const name of usageFigureNames) {
    const { group, field } = usageFigures[name];
    if (group !== null) row[group] = tokens;
    (group === null ? row : tokens)[field] = amountOf(name);
  }
  return row as Omit<UsageRow, RowHead>;
}

/** Returns the amount of a figure in a row. */
export function figureIn(row: UsageRow, name: UsageFigure): number | null {
  const { group, field } = usageFigures[name];
  const fields: Readonly<Record<string, unknown>> = group === null ? row : row.tokens;
  return fields[field] as number | null;
}

export const usageReport = z
  .strictObject({
    caller: callerBody.meta({ description: 'The identity of the caller.' }),
    usage: z.array(usageRow),
    budgets: z.array(limitUse).optional().meta({
      description:
        "Budgets with their use. With the scope `admin`, all of them; otherwise the budgets of the caller's key and of its group.",
    }),
  })
  .meta({ id: 'UsageReport' });
export type UsageReport = z.infer<typeof usageReport>;
