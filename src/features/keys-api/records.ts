import { z } from 'zod';
import { type ClientText, clientText, encodeClient, readClientId } from '../../shared/client.js';
import { type AddedKey, digestsOf, plainOptions, refusedOptions } from '../../shared/config/api-keys.js';
import type { OptionTable } from '../../shared/config/key-options.js';
import { keyNamePattern } from '../../shared/config/key-values.js';
import { meaningOf } from '../../shared/text/system-error.js';

/** Key that was made over HTTP. */
export interface MadeKey extends AddedKey {
  /** Client that has made it; `@` and the name of a group for a key that the group keeps, whoever made it. */
  readonly owner: ClientText | `@${string}` | '';
  /** Time at which it was made, in milliseconds since the epoch. */
  readonly madeAt: number;
  /** Stored record of a key that is refused because its record has a fault. */
  readonly damage?: { readonly record: unknown; readonly fault: string };
}

/**
 * Returns the client for a key. `person`: client of the person who makes it; null for others. `id`: is never given twice,
 * and the name may be.
 */
export function madeKeyClient(
  person: ClientText | null,
  { name, id }: { readonly name: string; readonly id: string },
): ClientText {
  if (person === null) return encodeClient({ kind: 'made', name, id });
  return encodeClient({ kind: 'sso', name: readClientId(person).name, key: { name, id } });
}

/** Whether a group keeps a key, so that no client has it among its own keys. */
export function isGroupOwner(owner: MadeKey['owner']): boolean {
  return owner.startsWith('@');
}

const content = z.object({ version: z.literal(1), keys: z.array(z.unknown()) });

const parts = {
  name: z.string().regex(keyNamePattern),
  client: clientText.refine((text) => /^(made |sso [^/]+\/)[\w.-]+~\w+$/.test(text)),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  owner: z.union([clientText, z.templateLiteral(['@', z.string()])]),
  made_at: z.iso.datetime(),
};
const record = z.strictObject({
  ...parts,
  client: parts.client.optional(),
  groups: z.array(z.string()).optional(),
  former: z.array(clientText).optional(),
  options: z.record(z.string(), z.union([z.string(), z.literal(true)])),
});

/**
 * Parses the file of keys that were made over HTTP. A record with a fault is refused alone: its name and its digest stay
 * taken, and it stays in the file. Throws for any other fault of the file. No message contains a digest.
 */
export function readMadeKeys(text: string, table: OptionTable): MadeKey[] {
  const parsed = content.safeParse(parseJson(text));
  if (!parsed.success) throw new Error('is damaged');
  const records = new MadeRecords(table);
  for (const each of parsed.data.keys) records.addRecord(each);
  return records.keys;
}

/** Reads this file, which may be missing. Throws if it is unreadable or damaged; the message is the end of a sentence. */
export async function readMadeKeysAt(
  path: string,
  read: (path: string) => Promise<string>,
  table: OptionTable,
): Promise<MadeKey[]> {
  const text = await read(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw new Error(`cannot be read (${meaningOf(error)})`);
  });
  return text === null ? [] : readMadeKeys(text, table);
}

/** Owns the records of a file, with the names, digests and clients in use. Of two records with one of these, the first counts. */
class MadeRecords {
  readonly #keys: MadeKey[] = [];
  readonly #names = new Set<string>();
  readonly #taken = new Set<string>();
  readonly #table: OptionTable;

  constructor(table: OptionTable) {
    this.#table = table;
  }

  get keys(): MadeKey[] {
    return this.#keys;
  }

  addRecord(each: unknown): void {
    const key = this.#keyOf(each);
    this.#keys.push(key);
    this.#names.add(key.name);
    for (const part of [key.client, ...digestsOf(key)]) this.#taken.add(part);
  }

  #keyOf(each: unknown): MadeKey {
    try {
      const key = keyOf(record.parse(each), this.#table);
      if (this.#names.has(key.name)) throw new Error('another key already has its name');
      if ([key.client, ...digestsOf(key)].some((part) => this.#taken.has(part)))
        throw new Error('another key already has its client or its value');
      return key;
    } catch (error) {
      return this.#refusedKey(each, error instanceof z.ZodError ? 'it is damaged' : (error as Error).message);
    }
  }

  /** Returns the key of a record with a fault. A name of its own replaces a name that is unreadable or in use. */
  #refusedKey(damaged: unknown, reason: string): MadeKey {
    const fields = Object(damaged) as Readonly<Record<string, unknown>>;
    const read = <T>(part: z.ZodType<T>, value: unknown) => part.safeParse(value).data ?? '';
    const own = read(parts.name, fields.name);
    const name = own === '' || this.#names.has(own) ? this.#freeName() : own;
    const free = <T extends string>(part: T) => (this.#taken.has(part) ? '' : part);
    const fault = `record ${this.#keys.length + 1} (${name}): ${reason}`;
    const identity = {
      client: free(read(parts.client, fields.client)) || madeKeyClient(null, { name, id: 'damaged' }),
      owner: parts.owner.safeParse(fields.owner).data ?? ('' as const),
    };
    const madeAt = Date.parse(read(parts.made_at, fields.made_at)) || 0;
    const digest = free(read(parts.digest, fields.digest));
    return { name, ...identity, digest, madeAt, groups: [], ...refusedOptions, damage: { record: damaged, fault } };
  }

  #freeName(): string {
    for (let number = this.#keys.length + 1; ; number++) {
      const name = `damaged-${number}`;
      if (!this.#names.has(name)) return name;
    }
  }
}

/** Throws an OptionFault for an option that cannot be read. */
function keyOf(
  { made_at, groups = [], former, options, ...key }: z.output<typeof record>,
  table: OptionTable,
): MadeKey {
  return {
    ...key,
    ...(former !== undefined && { former }),
    client: key.client ?? firstClient(key, Date.parse(made_at)),
    madeAt: Date.parse(made_at),
    groups,
    ...plainOptions,
    ...table.readTexts(options),
  };
}

/** Returns the client of a key in a file without clients: the time at which the key was made identifies it. */
function firstClient({ name, owner }: Pick<MadeKey, 'name' | 'owner'>, madeAt: number): ClientText {
  const { data } = clientText.safeParse(owner);
  const person = data !== undefined && readClientId(data).kind === 'sso' ? data : null;
  return madeKeyClient(person, { name, id: madeAt.toString(36) });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the text of this file. Damaged records are unchanged. */
export function madeKeysText(keys: readonly MadeKey[], table: OptionTable): string {
  const rows = keys.map(({ name, client, digest, owner, madeAt, groups, former, damage, ...options }) =>
    damage === undefined
      ? {
          ...{ name, client, digest, owner, made_at: new Date(madeAt).toISOString() },
          ...(groups.length > 0 && { groups }),
          ...(former !== undefined && { former }),
          options: table.textsOf(options, true),
        }
      : damage.record,
  );
  return `${JSON.stringify({ version: 1, keys: rows }, null, 1)}\n`;
}
