import { z } from 'zod';
import { clientKinds } from '../client.js';
import { scopes } from '../config/api-keys.js';

/** The caller of a request, as the service identifies it. */
export const callerBody = z
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
export type CallerBody = z.infer<typeof callerBody>;

/** The part of GET /usage that the command needs to know the caller. */
export const callerReport = z.looseObject({ caller: callerBody });
