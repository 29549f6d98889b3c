import { z } from 'zod';
import { readinessStatuses } from '../health.js';
import { breakerBody } from './health.js';

const time = z.iso.datetime({ precision: 3 });

/** State of one account of a model CLI. */
const accountBody = z
  .strictObject({
    name: z.string().nullable().meta({ description: 'Null for the login of the service.' }),
    cli: z.string().meta({ description: 'The name of the model CLI.' }),
    owners: z
      .array(z.string())
      .meta({ description: 'Clients such as `key ada`. If empty, the account serves clients without an account.' }),
    status: z.enum(readinessStatuses).meta({ description: 'Result of the last readiness check.' }),
    checked_at: time.nullable(),
    error: z.string().optional().meta({ description: 'Why the account cannot be used.' }),
    needs_login: z.boolean().meta({ description: 'Whether somebody has to log in, or to renew the token.' }),
    jobs: z.int().nonnegative().meta({ description: 'Its waiting and running jobs.' }),
    max_jobs: z.int().positive().nullable().meta({ description: 'Limit of its running jobs; null for none.' }),
    spare: z.boolean().meta({ description: 'Whether it serves only while the others that a client may use cannot.' }),
    weight: z.number().meta({
      description:
        'How many jobs it gets in relation to the others that a client may use, if they share jobs: the part of its quota that is left divided by the part of the time until the reset; 1 if it has reported no quota.',
    }),
    last_used_at: time.nullable().meta({ description: 'When a job last started; null if none has since the start.' }),
    breaker: breakerBody.meta({ description: 'Whether its jobs are blocked, and the windows of its quota.' }),
  })
  .meta({ id: 'Account' });
export type AccountBody = z.infer<typeof accountBody>;

export const accountList = z
  .strictObject({ count: z.int().nonnegative(), accounts: z.array(accountBody) })
  .meta({ id: 'AccountList' });
export type AccountList = z.infer<typeof accountList>;
