import { z } from 'zod';
import { keptErrors, readingErrors } from '../../shared/api/endpoints.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import { integer } from '../../shared/config/values.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import { actor } from '../../shared/ipc/protocol.js';

/** Tables of the keys that clients lend, which both processes and the documents read. */

export const variables = {
  MODEL_API_MAX_LENT_HOURS: {
    ...{ schema: integer(0, 168), fallback: '24', secrecy: 'none' },
    meaning: 'longest time of a [lent key](clients.md#lent-keys); 0: nobody may lend a key',
  },
} as const satisfies FeatureVariables;

export type LentKeyValues = ValuesOf<typeof variables>;

/** Keys that a client may have lent at the same time. */
export const maxOfClient = 16;
/** Shortest time of a lent key, in seconds. */
const minSeconds = 10;

export const lendRequest = z
  .strictObject({
    seconds: z.int().min(minSeconds).meta({ description: 'Time after which the lent key ends by itself.' }),
  })
  .meta({ id: 'LendKeyRequest' });

const viewFields = {
  id: z.string().meta({ description: 'Id of the lent key, by which it can be ended.' }),
  client: z
    .string()
    .meta({ description: 'Client whose key was lent. All that is done with the lent key counts for it.' }),
  made_at: z.string(),
  expires_at: z
    .string()
    .meta({ description: 'Time at which the lent key ends, unless the key that lent it ends before.' }),
};

const lentKeyView = z.strictObject(viewFields).meta({ id: 'LentKey' });
export type LentKeyView = z.infer<typeof lentKeyView>;

export const newLentKey = z
  .strictObject({
    key: z.string().meta({ description: 'The lent key. Save it: it will not be shown again.' }),
    ...viewFields,
  })
  .meta({ id: 'NewLentKey' });
export type NewLentKey = z.infer<typeof newLentKey>;

export const lentKeyList = z
  .strictObject({ keys: z.array(lentKeyView), request_id: z.string() })
  .meta({ id: 'LentKeyList' });

export const endedLentKey = z
  .strictObject({ success: z.literal(true), id: z.string(), request_id: z.string() })
  .meta({ id: 'EndedLentKey' });

/** Word that names the lent key of the request itself. */
export const ownId = 'current';

/** Client that lends or ends a key. `lentId`: id of the lent key of the request; null for other keys. */
const borrower = { by: actor, lentId: z.string().nullable() };

export const calls = {
  /** `digest`: digest of the key of the request; null for a person without a key. */
  lendKey: {
    request: z.object({ ...borrower, digest: z.string().nullable(), seconds: z.number() }),
    answer: newLentKey,
  },
  listLentKeys: { request: z.object(borrower), answer: z.object({ keys: z.array(lentKeyView) }) },
  endLentKey: { request: z.object({ ...borrower, id: z.string() }), answer: z.object({ id: z.string() }) },
};

export const endpoints: readonly FeatureEndpoint[] = [
  {
    ...{ method: 'GET', route: '/lent-keys', errors: ['unauthorized', 'forbidden', 'rate_limited'] },
    ...{ alwaysNeedsKey: true, id: 'listLentKeys', summary: 'List the lent keys' },
    description: 'With the scope `admin` all lent keys, else your own. The list never contains a key itself.',
    answer: lentKeyList,
    answerText: 'The lent keys.',
  },
  {
    ...{ method: 'POST', route: '/lent-keys', errors: [...readingErrors, 'store_unavailable'], success: 201 },
    ...{ alwaysNeedsKey: true, id: 'lendKey', summary: 'Lend your key for a time' },
    description: `Makes a key that acts for your client and ends by itself: after this time, or when the key that lends it is rotated, removed or expires. It never may do more than that key may at the moment, has no rights of an administrator, and can lend nothing. You may have ${maxOfClient} lent keys at the same time.`,
    body: { schema: lendRequest, example: { seconds: 14_400 } },
    answer: newLentKey,
    answerText: 'The lent key, which is not shown again.',
  },
  {
    ...{ method: 'DELETE', route: '/lent-keys/{id}', errors: [...keptErrors, 'not_found'] },
    params: { id: `Id of the lent key; \`${ownId}\` is the lent key with which the request is sent.` },
    ...{ alwaysNeedsKey: true, id: 'endLentKey', summary: 'End a lent key' },
    description: 'The service refuses the key at once. Jobs in the background that were started with it go on.',
    answer: endedLentKey,
    answerText: 'The lent key was ended.',
  },
];

/** Action `lend` of `prompt-relay keys`, as the help shows it. */
export const lendHelp = {
  name: 'lend',
  synopsis: '--for <time> | lend --end [id] | lend --list',
  flags: {
    for: { type: 'string', placeholder: '<time>', description: 'lend: time of the lent key, such as 90m or 4h' },
    end: { type: 'boolean', description: 'lend: end a lent key; without an id, the one in MODEL_API_KEY' },
    list: { type: 'boolean', description: 'lend: list the lent keys' },
  },
  note: '"lend" asks the service for a key that acts for the client of your key, and ends by itself. It may never do more than your key, and ends with it. Only the lent key is printed to stdout. Give it to a job of a batch system in place of your key.',
  examples: ['MODEL_API_KEY=$(prompt-relay keys lend --for 4h) sbatch job.sh'],
} as const;

export const logEvents = {
  key_lent: 'a client lent its key for a time: id, by, until',
  lent_key_ended: 'a client or an administrator ended a lent key: id, by',
  lent_keys_rejected: 'the stored lent keys are damaged: all of them have ended',
} as const;
