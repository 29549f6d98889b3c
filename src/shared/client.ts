import { createHash } from 'node:crypto';

/**
 * The client of a request: whom it is counted for, in the queue, at the rate cap and in the log, and whose conversations it
 * sees. The first word says what names it, so that a key, a user and an address of the same name are three clients.
 */

/** The holder of the API key with this name. */
export function keyClient(name: string): string {
  return `key ${name}`;
}

const maxPlainSubclient = 64;

/** One of those whom the holder of a key speaks for, by the name that the holder gives. What is long or odd goes by its digest. */
export function subClient(holder: string, name: string): string {
  const isPlain = name.length <= maxPlainSubclient && /^[\w.@+-]+$/.test(name);
  return `${holder}/${isPlain ? name : createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
}

/** The client whose key it is that a sub-client comes with; any other client is its own. */
export function holderOf(client: string): string {
  const end = client.startsWith('key ') ? client.indexOf('/') : -1;
  return end < 0 ? client : client.slice(0, end);
}

/** The user of this machine with this name. */
export function userClient(name: string): string {
  return `user ${name}`;
}

/** Whoever calls from this address. Of everybody here, `addressOf` makes one. */
export function addressClient(address: string): string {
  return `address ${address}`;
}
/** What a client can be told apart by. `other` stands for all that are not told apart. */
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
