/**
 * The client of a request: whom it is counted for, in the queue, at the rate cap and in the log, and whose conversations it
 * sees. The first word says what names it, so that a key, a user and an address of the same name are three clients.
 */

/** The holder of the API key with this name. */
export function keyClient(name: string): string {
  return `key ${name}`;
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
