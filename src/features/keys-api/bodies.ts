import { z } from 'zod';
import { optionFields, viewFields } from '../../shared/config/key-option-table.js';

const text = z.string().max(4096);

/** Bodies about keys without the options of features, which `keyFieldsOf` returns. */

/** Options for one model, such as `opus:cost`, by their names in the keys file. Other options have no colon. */
const modelName = z.string().max(256).regex(/:/, 'must be a model, a colon and an option, such as opus:cost');
const modelLimits = z.record(modelName, text.nullable()).optional();
const bodyFields = {
  ...optionFields,
  model_limits: modelLimits.meta({
    description: 'Budgets for one model, such as `{"opus:cost": "50/month"}`; null removes one.',
  }),
};

const options = z.strictObject(bodyFields);
export type ChangeKeyRequest = z.infer<typeof options>;

export const makeKeyRequest = z
  .strictObject({
    name: z.string().meta({ description: '1 to 64 letters, digits and `. _ -`. No other key may have it.' }),
    ...bodyFields,
  })
  .meta({ id: 'MakeKeyRequest' });
export type MakeKeyRequest = z.infer<typeof makeKeyRequest>;

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
  ...viewFields,
  model_limits: z
    .record(z.string(), z.string())
    .optional()
    .meta({ description: 'Budgets for one model, if there are any.' }),
  previous_expires: z.string().nullable().meta({ description: 'Day until which the old key works after a rotation.' }),
};

export const keyView = z.strictObject(keyFields).meta({ id: 'Key' });
export type KeyView = z.infer<typeof keyView>;

export const keyList = z.strictObject({ keys: z.array(keyView), request_id: z.string() }).meta({ id: 'KeyList' });

export const newKey = z
  .strictObject({
    key: z.string().meta({ description: 'The key. Save it: it will not be shown again.' }),
    ...keyFields,
  })
  .meta({ id: 'NewKey' });
export type NewKey = z.infer<typeof newKey>;

export const removedKey = z
  .strictObject({ success: z.literal(true), name: z.string(), request_id: z.string() })
  .meta({ id: 'RemovedKey' });

/** Returns the texts of the options in a body; null for an option to remove. */
export function textsIn(body: ChangeKeyRequest): Record<string, string | true | null> {
  const texts = Object.entries(body).flatMap(([name, value]): [string, string | true | null][] => {
    if (value === undefined) return [];
    if (name === 'model_limits') return Object.entries(value as z.output<typeof modelLimits> & object);
    if (value === null || value === false) return [[name, null]];
    if (value === true) return [[name, true]];
    return [[name, Array.isArray(value) ? value.join('+') : String(value)]];
  });
  return Object.fromEntries(texts);
}
