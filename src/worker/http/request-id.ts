import { randomUUID } from 'node:crypto';

const acceptable = /^[A-Za-z0-9._-]{1,64}$/;

/** The client's own request id where it is well formed, else a new UUID. */
export function requestIdFrom(header: string | undefined): string {
  return header !== undefined && acceptable.test(header) ? header : randomUUID();
}
