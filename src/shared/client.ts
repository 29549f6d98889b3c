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
