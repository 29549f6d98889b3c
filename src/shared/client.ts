import { createHash } from 'node:crypto';
import { z } from 'zod';

/**
 * Client of a request as a value. The service passes it on and stores it as one text, which `encodeClient` writes: the
 * queue, the limits and the log use it, and a client sees only its data. No two identities have the same text.
 */
export type Identity =
  /** Key of the operator. `user`: one of its sub-clients. */
  | { readonly kind: 'key'; readonly name: string; readonly user?: string }
  /** Key that an administrator has made over HTTP. `id` is never given twice, and the name may be. */
  | { readonly kind: 'made'; readonly name: string; readonly id: string; readonly user?: string }
  /** Person whom a trusted proxy has signed on, or a key that this person has made. */
  | { readonly kind: 'sso'; readonly name: string; readonly key?: MadeKeyName; readonly user?: string }
  /** User of this machine. */
  | { readonly kind: 'user'; readonly name: string }
  /** All callers from an address. */
  | { readonly kind: 'address'; readonly name: string };

/** Name of a key that was made over HTTP, and its id, which is never given twice. */
interface MadeKeyName {
  readonly name: string;
  readonly id: string;
}

/**
 * Text of an identity, such as `key alice`, `sso ada@example.org` or `address 192.0.2.1`. The compiler refuses other texts,
 * such as a name without its kind.
 */
export type ClientText = `${Identity['kind']} ${string}`;

/** Name under which the usage of a group of people is counted. */
type GroupUsageName = `group ${string}`;

/** Name under which usage is counted in addition to that of its clients: for a group, or for one model. */
export type AddedUsage = GroupUsageName | `${ClientText}/%${string}`;

/** Name under which usage is counted: a client, a name in addition, or the sum of several clients (`other`). */
export type UsageName = ClientText | AddedUsage | `other ${string}`;

/** Returns the text of an identity: its kind, then its name, the key of a person and the sub-client with slashes between. */
export function encodeClient(identity: Identity): ClientText {
  const { kind, name } = identity;
  const parts = [kind === 'made' ? `${name}~${identity.id}` : name];
  if (kind === 'sso' && identity.key !== undefined) parts.push(`${identity.key.name}~${identity.key.id}`);
  if ('user' in identity && identity.user !== undefined) parts.push(shortUser(identity.user));
  return `${kind} ${parts.join('/')}`;
}

const maxPlainUser = 64;
const digestLength = 32;

/** Returns the name of a sub-client. A long or unusual name, and one that looks like a digest, is replaced by its digest. */
function shortUser(name: string): string {
  const isDigest = name.length === digestLength && /^[0-9a-f]+$/.test(name);
  const isPlain = name.length <= maxPlainUser && !isDigest && /^[\w.@+-]+$/.test(name);
  return isPlain ? name : createHash('sha256').update(name).digest('hex').slice(0, digestLength);
}

/** Returns the client for an API key of the operator. */
export function keyClient(name: string): ClientText {
  return encodeClient({ kind: 'key', name });
}

/** Returns the client for a user of this machine. */
export function userClient(name: string): ClientText {
  return encodeClient({ kind: 'user', name });
}

/** Returns the client for a person whom a trusted proxy has signed on. */
export function ssoClient(name: string): ClientText {
  return encodeClient({ kind: 'sso', name });
}

/**
 * Returns the client for all callers from an address. `addressOf` returns the same address for all callers of this
 * machine.
 */
export function addressClient(address: string): ClientText {
  return encodeClient({ kind: 'address', name: address });
}

/** Returns the client for a sub-client of a key. */
export function subClient(key: ClientText, user: string): ClientText {
  return `${key}/${shortUser(user)}`;
}

/**
 * Returns the holder of a client, with whom it shares limits and accounts: the person who has made a key, the
 * key of a sub-client, and any other client itself.
 */
export function holderOf(client: ClientText): ClientText;
export function holderOf(client: UsageName): UsageName;
export function holderOf(client: UsageName): UsageName {
  return upTo(client, mayHaveParts(client) ? client.indexOf('/') : -1);
}

/**
 * Returns the bounds of the texts of other clients with the holder of this client: these texts are above the first one and
 * below the second one. The bounds are equal if the holder has no other clients.
 */
export function clientsOfHolder(client: ClientText): readonly [above: string, below: string] {
  const holder = holderOf(client);
  return mayHaveParts(client) ? [`${holder}/`, `${holder}0`] : ['', '']; // in ASCII, 0 follows the slash
}

/** Returns a function that returns whether a text is this client, or one of its keys and sub-clients. */
export function isOfClient(owner: ClientText): (text: string) => text is ClientText {
  const start = mayHaveParts(owner) ? `${owner}/` : null;
  return (text): text is ClientText => text === owner || (start !== null && text.startsWith(start));
}

/** Returns the client whose options apply: the key of a sub-client, and any other client itself. */
export function optionHolder(client: ClientText): ClientText;
export function optionHolder(client: UsageName): UsageName;
export function optionHolder(client: UsageName): UsageName {
  const first = mayHaveParts(client) ? client.indexOf('/') : -1;
  return upTo(client, first >= 0 && isOfPerson(client) ? client.indexOf('/', first + 1) : first);
}

/** Returns the clients for which usage of this client counts: the holder, and if its key is another one, the key. */
export function spendersOf(client: ClientText): readonly ClientText[] {
  const holder = holderOf(client);
  if (holder === client) return [client];
  const key = optionHolder(client);
  return holder === key ? [holder] : [holder, key];
}

/** Whether a slash in the text ends a part: names of users and addresses may contain one. */
function mayHaveParts(client: UsageName): boolean {
  return client.startsWith('key ') || isOfPerson(client) || client.startsWith('made ');
}

function isOfPerson(client: UsageName): boolean {
  return client.startsWith('sso ');
}

function upTo(client: UsageName, end: number): UsageName {
  return end < 0 ? client : (client.slice(0, end) as UsageName);
}

/** Returns the name under which usage is counted for a group of people. No client has such a name. */
export function groupUsage(name: string): GroupUsageName {
  return `group ${name}`;
}

function isGroupUsage(name: string): name is GroupUsageName {
  return name.startsWith('group ');
}

/**
 * Begins the part of a name that has a model. No name of a sub-client or of a key begins with the first one, and no name
 * of a group with a line contains the second one.
 */
function modelSignOf(owner: UsageName): string {
  return isGroupUsage(owner) ? ' %' : '/%';
}

/**
 * Returns the name under which the usage of one model is counted, in addition to all usage of its owner: of a client, or
 * the name of the usage of a group. It is deleted with its client, like those of sub-clients.
 */
export function modelUsage(owner: UsageName, model: string): AddedUsage {
  return `${owner}${modelSignOf(owner)}${encodeURIComponent(model)}` as AddedUsage;
}

/** Splits a name as `modelUsage` makes it. The model of any other name is null. */
export function usedModelIn(name: UsageName): readonly [owner: UsageName, model: string | null] {
  const sign = modelSignOf(name);
  const at = isAddedUsage(name) ? name.lastIndexOf(sign) : -1;
  const [owner, encoded] = [name.slice(0, Math.max(at, 0)), name.slice(at + sign.length)];
  if (at < 0 || !/^(?:[^%]|%[0-7][0-9A-F])+$/.test(encoded)) return [name, null];
  return [owner as UsageName, decodeURIComponent(encoded)];
}

/**
 * Whether usage is counted under a name in addition to that of its clients: for a group, or for one model. Reports do not
 * show it.
 */
export function isAddedUsage(name: UsageName): name is AddedUsage {
  return isGroupUsage(name) || (mayHaveParts(name) && name.includes(modelSignOf(name)));
}

/** Kinds of clients. `other` is the sum of several clients. */
export const clientKinds = ['key', 'made', 'user', 'sso', 'address', 'other'] as const;
export type ClientKind = (typeof clientKinds)[number];

/** Kinds of owners of a limit. A group and the whole service are no clients. */
export const limitKinds = [...clientKinds, 'group', 'service'] as const;
export type LimitKind = (typeof limitKinds)[number];

/** Kind and name of a client, as reports show them. */
export interface ClientId {
  readonly kind: ClientKind;
  readonly name: string;
}

export function readClientId(client: UsageName): ClientId {
  const kind = clientKinds.find((known) => client.startsWith(`${known} `));
  return kind === undefined ? { kind: 'other', name: client } : { kind, name: client.slice(kind.length + 1) };
}

/** Returns the name that `readClientId` has read. */
export function writeClientId(id: ClientId & { readonly kind: Identity['kind'] }): ClientText;
export function writeClientId(id: ClientId): UsageName;
export function writeClientId({ kind, name }: ClientId): UsageName {
  return kind === 'other' && isGroupUsage(name) ? name : `${kind} ${name}`;
}

const ownKinds = z.enum(clientKinds).exclude(['other']);

/** Checks the text of a client that comes from another process, a store or a request. */
export const clientText = z.templateLiteral([ownKinds, ' ', z.string()]);

/** Checks a name under which usage is counted. */
export const usageName = z.templateLiteral([z.enum([...clientKinds, 'group']), ' ', z.string()]);

/** Returns those of these stored rows that belong to a client. Another row, which a person may have made, harms no other row. */
export function rowsOfClients<R extends { readonly client?: unknown }>(
  rows: readonly R[],
  name: z.ZodType = clientText,
): R[] {
  return rows.filter(({ client }) => name.safeParse(client).success);
}

/** Empty text in place of a client, in logs and stores, if there is none. */
export const noClient = '' as ClientText;
