import { z } from 'zod';
import { scopes } from '../config/api-keys.js';

const text = z.string().max(4096);
const count = z.int().nonnegative();

/** Options of a key, in the spelling of the keys file. null removes an option. */
const optionFields = {
  scopes: z.array(z.enum(scopes)).min(1).optional().meta({ description: 'What the key may do.' }),
  rate: text.nullable().optional().meta({ description: 'Requests in a window of seconds, such as `60/60`.' }),
  concurrent: count.nullable().optional().meta({ description: 'Limit of running jobs.' }),
  queue: count.nullable().optional().meta({ description: 'Limit of waiting jobs.' }),
  weight: count.nullable().optional().meta({ description: 'Turns in each round of the queue.' }),
  models: z.array(text).min(1).nullable().optional().meta({ description: 'The only models that the key may name.' }),
  accounts: z.array(text).min(1).nullable().optional().meta({ description: 'The accounts that serve the key.' }),
  fallback: z.literal('off').nullable().optional().meta({ description: 'No other model answers its requests.' }),
  search: text.nullable().optional().meta({
    description: 'The model may search the web: `on`, or searches in a day such as `20/day`.',
  }),
  tokens: text.nullable().optional().meta({ description: 'Budget of tokens, such as `1000000/day`.' }),
  cost: text.nullable().optional().meta({ description: 'Budget in US dollars, such as `5/day`.' }),
  group: text.nullable().optional().meta({ description: 'Group whose budget the key shares.' }),
  webhooks: text.nullable().optional().meta({ description: 'URLs that may be called back, ending in `*`.' }),
  subclients: z.boolean().optional().meta({ description: 'Whether the holder may name sub-clients.' }),
  expires: text.nullable().optional().meta({ description: 'Day (UTC) from which the key is refused.' }),
};

const options = z.strictObject(optionFields);
export type KeyOptionsBody = z.infer<typeof options>;

export const makeKeyRequest = z
  .strictObject({
    name: z.string().meta({ description: '1 to 64 letters, digits and `. _ -`. No other key may have it.' }),
    ...optionFields,
  })
  .meta({ id: 'MakeKeyRequest' });

export const changeKeyRequest = options.meta({ id: 'ChangeKeyRequest' });

export const rotateKeyRequest = z
  .strictObject({
    old_until: text.optional().meta({
      description: 'Day (UTC) until which the old key works. Without it, the old key stops working at once.',
    }),
  })
  .meta({ id: 'RotateKeyRequest' });

const keyFields = {
  name: z.string(),
  client: z.string().meta({
    description:
      'Client of the key in usage, jobs and logs. A key made over HTTP has one that no other key ever has, such as `sso ada/laptop~8f2a11c09b3e`.',
  }),
  source: z.enum(['operator', 'http']).meta({
    description: '`operator`: the operator has configured it, and it cannot be changed over HTTP.',
  }),
  owner: z.string().nullable().meta({ description: 'Client that has made the key over HTTP.' }),
  made_at: z.string().nullable(),
  scopes: z.array(z.enum(scopes)),
  rate: z.string().nullable(),
  concurrent: z.int().nullable(),
  queue: z.int().nullable(),
  weight: z.int().nullable(),
  models: z.array(z.string()).nullable(),
  accounts: z.array(z.string()).nullable(),
  fallback: z.literal('off').nullable(),
  search: z.string().nullable(),
  tokens: z.string().nullable(),
  cost: z.string().nullable(),
  group: z.string().nullable(),
  webhooks: z.string().nullable(),
  subclients: z.boolean(),
  expires: z.string().nullable(),
  previous_expires: z.string().nullable().meta({ description: 'Day until which the old key works after a rotation.' }),
};

export const keyView = z.strictObject(keyFields).meta({ id: 'Key' });
export type KeyView = z.infer<typeof keyView>;

export const keyList = z.strictObject({ keys: z.array(keyView), request_id: z.string() }).meta({ id: 'KeyList' });

export const newKey = z
  .strictObject({ key: z.string().meta({ description: 'The key. It is shown only now.' }), ...keyFields })
  .meta({ id: 'NewKey' });
export type NewKey = z.infer<typeof newKey>;

export const removedKey = z
  .strictObject({ success: z.literal(true), name: z.string(), request_id: z.string() })
  .meta({ id: 'RemovedKey' });

/** Returns the texts of the options in a body; null for an option to remove. */
export function textsIn(body: KeyOptionsBody): Record<string, string | true | null> {
  const texts = Object.entries(body).flatMap(([name, value]): [string, string | true | null][] => {
    if (value === undefined) return [];
    if (value === null || value === false) return [[name, null]];
    if (value === true) return [[name, true]];
    return [[name, Array.isArray(value) ? value.join('+') : String(value)]];
  });
  return Object.fromEntries(texts);
}
