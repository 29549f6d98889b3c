import { z } from 'zod';
import { clientKinds } from '../client.js';
import { scopes } from '../config/api-keys.js';
import { outcomes } from '../job.js';

const count = z.int().nonnegative();

/** Day in UTC, such as 2026-01-31. */
export const dayQuery = z.iso.date();

const usageRow = z
  .strictObject({
    day: z.iso.date().meta({ description: 'In UTC.' }),
    client: z.string().meta({ description: 'Name of the API key or local user, or the address.' }),
    kind: z.enum(clientKinds).meta({ description: '`other` is the sum of all clients of a day beyond the limit.' }),
    jobs: z.record(z.enum(outcomes), count).meta({ description: 'Jobs that have ended on this day, by outcome.' }),
    refused: count.meta({ description: 'Jobs that were not admitted: 429 and 503.' }),
    tokens: z
      .strictObject({ input: count, output: count })
      .meta({ description: 'Tokens of all jobs, with any outcome. Estimated if the model CLI reports none.' }),
    cost_usd: z.number().nonnegative().nullable().meta({ description: 'null if the model CLI reports no cost.' }),
    model_seconds: z.number().nonnegative().meta({ description: 'Time that the jobs occupied a slot.' }),
  })
  .meta({ id: 'UsageRow' });
export type UsageRow = z.infer<typeof usageRow>;

const amount = z.strictObject({ max: z.number().positive(), used: z.number().nonnegative() });

const budgetUse = z
  .strictObject({
    client: z.string().meta({ description: 'Name of the API key. Its sub-clients are counted with it.' }),
    resets_at: z.iso.datetime({ precision: 3 }).meta({ description: 'The end of the day in UTC.' }),
    tokens: amount.nullable().meta({ description: 'Input and output tokens of this day; null without such a budget.' }),
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
    budgets: z
      .array(budgetUse)
      .optional()
      .meta({ description: "Budgets of today. With the scope `admin`, of all keys; otherwise of the caller's key." }),
  })
  .meta({ id: 'UsageReport' });
export type UsageReport = z.infer<typeof usageReport>;
