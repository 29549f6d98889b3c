import { z } from 'zod';
import { budgetKinds, clientKinds } from '../client.js';
import { scopes } from '../config/api-keys.js';
import { budgetPeriods, lastDayOf } from '../days.js';
import { outcomes } from '../job.js';

const count = z.int().nonnegative();

/** Day in UTC, such as 2026-01-31. */
export const dayQuery = z.iso.date();

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
    refused: count.meta({ description: 'Jobs that were not admitted: 429 and 503.' }),
    tokens: z
      .strictObject({
        input: count,
        cached_input: count.meta({
          description: 'Input tokens that were read from the cache of the model; part of `input`.',
        }),
        cache_write: count.meta({
          description: 'Input tokens that were written to the cache of the model; part of `input`.',
        }),
        output: count,
      })
      .meta({ description: 'Tokens of all jobs, with any outcome. Estimated if the model CLI reports none.' }),
    web_searches: count.meta({ description: 'Web searches that the model made for jobs with any outcome.' }),
    cost_usd: z.number().nonnegative().nullable().meta({ description: 'null if the model CLI reports no cost.' }),
    model_seconds: z.number().nonnegative().meta({ description: 'Time that the jobs occupied a slot.' }),
  })
  .meta({ id: 'UsageRow' });
export type UsageRow = z.infer<typeof usageRow>;

const amount = z.strictObject({
  max: z.number().positive(),
  used: z.number().nonnegative(),
  period: z.enum(budgetPeriods),
  resets_at: z.iso.datetime({ precision: 3 }).meta({ description: 'The end of the period, in UTC.' }),
});
export type BudgetAmount = z.infer<typeof amount>;

const budgetUse = z
  .strictObject({
    client: z.string().meta({
      description:
        'Name of the API key, whose sub-clients are counted with it, or of the person, with the own keys; or `@` and the name of a group, or `@*` for the whole service.',
    }),
    kind: z.enum(budgetKinds),
    resets_at: z.iso.datetime({ precision: 3 }).meta({ description: 'The earlier `resets_at` of both budgets.' }),
    tokens: amount
      .nullable()
      .meta({ description: 'Input and output tokens of this period; null without such a budget.' }),
    cost_usd: amount.nullable(),
  })
  .meta({ id: 'BudgetUse' });
export type BudgetUse = z.infer<typeof budgetUse>;

const usageCaller = z
  .strictObject({
    client: z.string().meta({ description: 'Name of the API key or local user, or the address.' }),
    kind: z.enum(clientKinds),
    scopes: z
      .array(z.enum(scopes))
      .readonly()
      .nullable()
      .meta({ description: 'Of the API key; null if the service needs no key.' }),
  })
  .meta({ id: 'UsageCaller' });
export type UsageCaller = z.infer<typeof usageCaller>;

export const usageReport = z
  .strictObject({
    caller: usageCaller.meta({ description: 'The identity of the caller.' }),
    usage: z.array(usageRow),
    budgets: z.array(budgetUse).optional().meta({
      description:
        "Budgets with their use. With the scope `admin`, all of them; otherwise the budgets of the caller's key and of its group.",
    }),
  })
  .meta({ id: 'UsageReport' });
export type UsageReport = z.infer<typeof usageReport>;
