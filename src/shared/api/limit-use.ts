import { z } from 'zod';
import { limitKinds } from '../client.js';

/** Periods of a limit, in UTC. A week begins on Monday. */
export const periods = ['day', 'week', 'month'] as const;
export type CalendarPeriod = (typeof periods)[number];

const amount = z.strictObject({
  max: z.number().positive(),
  used: z.number().nonnegative(),
  period: z.enum(periods),
  resets_at: z.iso.datetime({ precision: 3 }).meta({ description: 'The end of the period, in UTC.' }),
});
export type LimitAmount = z.infer<typeof amount>;

export const limitUse = z
  .strictObject({
    client: z.string().meta({
      description:
        'Name of the API key, whose sub-clients are counted with it, or of the person, with the own keys; or `@` and the name of a group, or `@*` for the whole service.',
    }),
    kind: z.enum(limitKinds),
    model: z
      .string()
      .optional()
      .meta({ description: 'The only model whose jobs count, as the keys file names it; missing if all jobs count.' }),
    resets_at: z.iso.datetime({ precision: 3 }).meta({ description: 'The earlier `resets_at` of both budgets.' }),
    tokens: amount
      .nullable()
      .meta({ description: 'Input and output tokens of this period; null without such a budget.' }),
    cost_usd: amount.nullable(),
  })
  .meta({ id: 'BudgetUse' });
export type LimitUse = z.infer<typeof limitUse>;
