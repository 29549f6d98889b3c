import { randomBytes } from 'node:crypto';

/** Length of a random id: 144 bits. */
const idBytes = 18;

/** Returns a random id that cannot be guessed. */
export function newId(): string {
  return randomBytes(idBytes).toString('base64url');
}
