import { createHash } from 'node:crypto';

/**
 * Client of a request: the queue, the rate cap and the log use it, and it sees only its conversations. The first word
 * is the kind: a key, a user and a person signed on with the same name are three clients.
 */

/** Returns the client for an API key. */
export function keyClient(name: string): string {
  return `key ${name}`;
}

const maxPlainSubclient = 64;

/** Returns the client for a sub-client of a key holder. A long or unusual name is replaced by its digest. */
export function subClient(holder: string, name: string): string {
  const isPlain = name.length <= maxPlainSubclient && /^[\w.@+-]+$/.test(name);
  return `${holder}/${isPlain ? name : createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
}

/** Returns the key holder of a sub-client, and any other client unchanged. */
export function holderOf(client: string): string {
  const end = client.startsWith('key ') ? client.indexOf('/') : -1;
  return end < 0 ? client : client.slice(0, end);
}

/** Returns the client for a user of this machine. */
export function userClient(name: string): string {
  return `user ${name}`;
}

/** Returns the client for a person whom a trusted proxy has signed on. */
export function ssoClient(name: string): string {
  return `sso ${name}`;
}

/**
 * Returns the client for all callers from an address. `addressOf` returns the same address for all callers of this
 * machine.
 */
export function addressClient(address: string): string {
  return `address ${address}`;
}

const groupPrefix = 'group ';

/** Returns the name under which usage is counted for a group of people. No client has such a name. */
export function groupUsage(name: string): string {
  return groupPrefix + name;
}

/** Whether usage is counted for a group. Reports do not show it: they have the usage of its people. */
export function isGroupUsage(name: string): boolean {
  return name.startsWith(groupPrefix);
}

/** Kinds of clients. `other` is the sum of several clients. */
export const clientKinds = ['key', 'user', 'sso', 'address', 'other'] as const;
type ClientKind = (typeof clientKinds)[number];

/** Client of a request in two words, such as `key alice`, `sso ada@example.org` or `address 192.0.2.1`. */
export interface ClientId {
  readonly kind: ClientKind;
  readonly name: string;
}

export function readClientId(client: string): ClientId {
  const kind = clientKinds.find((known) => client.startsWith(`${known} `));
  return kind === undefined ? { kind: 'other', name: client } : { kind, name: client.slice(kind.length + 1) };
}
