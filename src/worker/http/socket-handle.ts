import type { Socket } from 'node:net';

/** What Node's handle of a socket knows: bytes that were handed to it, and those of them that the system has not taken. */
interface HandleCounts {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

/**
 * Owns when the client of one socket last took something of what was written to it. Node's own time limit is no measure:
 * each write counts as life there, so that a ping every 15 s keeps a stream open which nobody reads.
 */
export class UnreadWatch {
  readonly #socket: Socket;
  #taken = 0;
  #takenMs = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** How long something has waited of which the client takes nothing, milliseconds. To be asked regularly. */
  unreadMs(nowMs: number): number {
    const { bytesWritten = 0, writeQueueSize = 0 } = this.#counts;
    const taken = bytesWritten - writeQueueSize;
    if (writeQueueSize === 0 || taken !== this.#taken) {
      this.#taken = taken;
      this.#takenMs = nowMs;
    }
    return nowMs - this.#takenMs;
  }

  /** Only the handle tells of a write that is half done: the socket counts it when it is whole. */
  get #counts(): Partial<HandleCounts> {
    return (this.#socket as unknown as { readonly _handle: HandleCounts | null })._handle ?? {};
  }
}

/** Whether it is a connection on a Unix socket. Its addresses would say so, but are gone with the connection. */
export function isUnixSocket(socket: Socket): boolean {
  const { _handle } = socket as unknown as { readonly _handle: object | null };
  return _handle?.constructor.name === 'Pipe';
}
