import { createHash } from 'node:crypto';

/**
 * The client of a request. The queue, the rate cap and the log count the request for it, and it sees its own conversations
 * only. The first word says what names it: a key, a user and an address of the same name are three clients.
 */

/** The holder of the API key with this name. */
export function keyClient(name: string): string {
  return `key ${name}`;
}

const maxPlainSubclient = 64;

/** A client that the holder of a key names. A long or odd name is replaced by its digest. */
export function subClient(holder: string, name: string): string {
  const isPlain = name.length <= maxPlainSubclient && /^[\w.@+-]+$/.test(name);
  return `${holder}/${isPlain ? name : createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
}

/** The holder of the key that a sub-client uses; any other client itself. */
export function holderOf(client: string): string {
  const end = client.startsWith('key ') ? client.indexOf('/') : -1;
  return end < 0 ? client : client.slice(0, end);
}

/** The user of this machine with this name. */
export function userClient(name: string): string {
  return `user ${name}`;
}

/** All callers from this address. `addressOf` gives all callers of this machine the same address. */
export function addressClient(address: string): string {
  return `address ${address}`;
}
/** What names a client. `other` stands for the clients that are counted together. */
export const clientKinds = ['key', 'user', 'address', 'other'] as const;
export type ClientKind = (typeof clientKinds)[number];

/** The client of a request in two words, as in `key alice`, `user bob` and `address 192.0.2.1`. */
export interface ClientId {
  readonly kind: ClientKind;
  readonly name: string;
}

export function readClientId(client: string): ClientId {
  const kind = clientKinds.find((known) => client.startsWith(`${known} `));
  return kind === undefined ? { kind: 'other', name: client } : { kind, name: client.slice(kind.length + 1) };
}
