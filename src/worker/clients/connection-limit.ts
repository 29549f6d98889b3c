import type { Socket } from 'node:net';
import type { Primary } from '../http/exchange.js';
import type { PeerCredentials } from './peer-credentials.js';

/**
 * Has the primary count each connection of a Unix socket for its user, as long as it is open: a connection costs its user
 * nothing, and the worker a descriptor.
 */
export class ConnectionLimit {
  readonly #primary: Pick<Primary, 'stream'>;
  readonly #credentials: Pick<PeerCredentials, 'uidOf'>;

  constructor(primary: Pick<Primary, 'stream'>, credentials: Pick<PeerCredentials, 'uidOf'>) {
    this.#primary = primary;
    this.#credentials = credentials;
  }

  /** Resolves with whether it may stay. Where the primary does not say so, it may. */
  async admit(socket: Socket): Promise<boolean> {
    const uid = await this.#credentials.uidOf(socket);
    if (socket.destroyed) return false;
    const held = this.#primary.stream('connection', { uid });
    socket.once('close', () => void held.return(undefined).catch(() => {}));
    const first = await held.next().catch(() => null);
    return first?.done === false ? first.value.isAllowed : true;
  }
}
