import type { SendHandle } from 'node:child_process';
import type { IncomingMessage, Server } from 'node:http';
import { Server as NetServer, Socket } from 'node:net';

/** What Node's own object of a connection has, and a `Socket` does not show. All of it may be missing. */
interface SocketHandle {
  readonly fd: number;
  /** Bytes that were given to it. */
  readonly bytesWritten: number;
  /** Those of them that the system has not taken. */
  readonly writeQueueSize: number;
  setBlocking(isBlocking: boolean): void;
}

/** Null when the connection is closed. */
function handleOf(socket: Socket): Partial<SocketHandle> | null {
  return (socket as unknown as { readonly _handle?: Partial<SocketHandle> | null })._handle ?? null;
}

/** What can be sent to another process, and stays open here; null when the connection is closed. */
export function sendableOf(socket: Socket): SendHandle | null {
  const handle = handleOf(socket);
  return (handle?.fd ?? -1) < 0 ? null : (handle as SendHandle);
}

/** Whether it is a connection on a Unix socket. Its addresses would say so, but are gone with the connection. */
export function isUnixSocket(socket: Socket): boolean {
  return handleOf(socket)?.constructor.name === 'Pipe';
}

/** Returns a function that sets O_NONBLOCK on this descriptor. Throws when it is neither a socket nor a pipe. */
export function nonBlockingSetter(fd: number): () => void {
  const handle = handleOf(new Socket({ fd, readable: false, writable: true })) as SocketHandle;
  handle.setBlocking(false);
  return () => handle.setBlocking(false);
}

/**
 * Owns when the client of one socket last took something of what was written to it. Node's own time limit is no measure:
 * every write resets it, so a ping every 15 s would keep a stream open that nobody reads.
 */
export class UnreadWatch {
  readonly #socket: Socket;
  #taken = 0;
  #takenMs = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** How long data has waited of which the client takes nothing, milliseconds. To be called regularly. */
  unreadMs(nowMs: number): number {
    // Only the handle counts a write that is half done: the socket counts it when it is whole.
    const { bytesWritten = 0, writeQueueSize = 0 } = handleOf(this.#socket) ?? {};
    const taken = bytesWritten - writeQueueSize;
    if (writeQueueSize === 0 || taken !== this.#taken) {
      this.#taken = taken;
      this.#takenMs = nowMs;
    }
    return nowMs - this.#takenMs;
  }
}

/** Reads nothing for this request while `isStopped`: by itself Node resumes the socket at each read of the body. */
export function stopReadsWhile(req: IncomingMessage, isStopped: () => boolean): void {
  const read = req._read.bind(req);
  req._read = (size) => {
    if (!isStopped()) read(size);
  };
}

/** Resolves when the last connection has closed. The HTTP server's own `close` would destroy connections whose answer is written and not sent. */
export function closeGently(server: Server): Promise<void> {
  return new Promise((resolve) => void NetServer.prototype.close.call(server, () => resolve()));
}
