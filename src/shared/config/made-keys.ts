import { z } from 'zod';
import { madeKeyClient, readClientId } from '../client.js';
import { type MadeKey, plainOptions } from './api-keys.js';
import { keyNamePattern, optionTexts, readOptionTexts } from './key-options.js';

const content = z.strictObject({
  version: z.literal(1),
  keys: z.array(
    z.strictObject({
      name: z.string().regex(keyNamePattern),
      client: z
        .string()
        .regex(/^(made |sso [^/]+\/)[\w.-]+~\w+$/)
        .optional(),
      digest: z.string().regex(/^[0-9a-f]{64}$/),
      owner: z.string(),
      made_at: z.iso.datetime(),
      groups: z.array(z.string()).optional(),
      options: z.record(z.string(), z.union([z.string(), z.literal(true)])),
    }),
  ),
});

/** Parses the file of keys that were made over HTTP. Throws an error whose message contains no digest. */
export function readMadeKeys(text: string): MadeKey[] {
  const parsed = content.safeParse(parseJson(text));
  if (!parsed.success) throw new Error('is damaged');
  const names = new Set(parsed.data.keys.map(({ name }) => name));
  if (names.size < parsed.data.keys.length) throw new Error('has two keys with one name');
  return parsed.data.keys.map(({ made_at, groups = [], options, ...key }) => ({
    ...key,
    client: key.client ?? firstClient(key, Date.parse(made_at)),
    madeAt: Date.parse(made_at),
    groups,
    ...plainOptions,
    ...readOptionTexts(options),
  }));
}

/** Returns the client of a key in a file without clients: the time at which the key was made identifies it. */
function firstClient({ name, owner }: Pick<MadeKey, 'name' | 'owner'>, madeAt: number): string {
  const person = readClientId(owner).kind === 'sso' ? owner : null;
  return madeKeyClient(person, { name, id: madeAt.toString(36) });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the text of this file. */
export function madeKeysText(keys: readonly MadeKey[]): string {
  const rows = keys.map(({ name, client, digest, owner, madeAt, groups, ...options }) => ({
    ...{ name, client, digest, owner, made_at: new Date(madeAt).toISOString(), ...(groups.length > 0 && { groups }) },
    options: optionTexts(options, true),
  }));
  return `${JSON.stringify({ version: 1, keys: rows }, null, 1)}\n`;
}
