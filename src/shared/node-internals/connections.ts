import type { SendHandle } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import type { Server as HttpServer, IncomingMessage } from 'node:http';
import net, { type AddressInfo, Server as NetServer, type Server, Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';

/** Node's internal handle of a connection, with data that a `Socket` does not expose. Every part may be missing. */
interface SocketHandle {
  readonly fd: number;
  /** Number of bytes that were passed to the handle. */
  readonly bytesWritten: number;
  /** Number of the `bytesWritten` that the kernel has not accepted yet. */
  readonly writeQueueSize: number;
  setBlocking(isBlocking: boolean): void;
  readStop(): void;
  readStart(): void;
}

/** Returns the handle of a socket; null if the connection is closed. */
function handleOf(socket: Socket): Partial<SocketHandle> | null {
  return (socket as unknown as { readonly _handle?: Partial<SocketHandle> | null })._handle ?? null;
}

/**
 * Returns a handle that can be sent to another process and remains open in this one; null if the connection is closed.
 */
export function sendableOf(socket: Socket): SendHandle | null {
  const handle = handleOf(socket);
  return (handle?.fd ?? -1) < 0 ? null : (handle as SendHandle);
}

/** Whether the socket is a Unix socket. Its addresses tell this only while it is connected. */
export function isUnixSocket(socket: Socket): boolean {
  return handleOf(socket)?.constructor.name === 'Pipe';
}

/** Returns a function that sets O_NONBLOCK on a descriptor. Throws if the descriptor is neither a socket nor a pipe. */
export function nonBlockingSetter(fd: number): () => void {
  const handle = handleOf(new Socket({ fd, readable: false, writable: true })) as SocketHandle;
  handle.setBlocking(false);
  return () => handle.setBlocking(false);
}

/**
 * Measures how long a client has read nothing of the data written to its socket. Node's socket timeout cannot measure
 * this: every write resets it, so a ping every 15 s would keep open the stream of a client that reads nothing.
 */
export class UnreadWatch {
  readonly #socket: Socket;
  #taken = 0;
  #takenMs = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /**
   * Returns for how long, in milliseconds, data has waited and the client has read nothing. Must be called regularly.
   */
  unreadMs(nowMs: number): number {
    // Only the handle counts the written part of an unfinished write; the socket counts a write when it is complete.
    const { bytesWritten = 0, writeQueueSize = 0 } = handleOf(this.#socket) ?? {};
    const taken = bytesWritten - writeQueueSize;
    if (writeQueueSize === 0 || taken !== this.#taken) {
      this.#taken = taken;
      this.#takenMs = nowMs;
    }
    return nowMs - this.#takenMs;
  }
}

/**
 * Stops reads of a request's body while `isStopped` returns true. Node alone resumes the socket at each read of the
 * body.
 */
export function stopReadsWhile(req: IncomingMessage, isStopped: () => boolean): void {
  const read = req._read.bind(req);
  req._read = (size) => {
    if (!isStopped()) read(size);
  };
}

/**
 * Stops the reads of these sockets, also of those whose data has arrived already, and returns a function that continues
 * the reads. `pause` of a socket would also change the state that HTTP requests depend on. Paused sockets stay paused.
 * The kernel serves the sockets in the order in which their reads continue, so this order is random.
 */
export function stopReads(sockets: Iterable<Socket>): () => void {
  const stopped = [...sockets].filter((socket) => !socket.isPaused());
  const places = stopped.map((socket) => ({ socket, place: Math.random() })).sort((a, b) => a.place - b.place);
  for (const socket of stopped) handleOf(socket)?.readStop?.();
  return () => {
    for (const { socket } of places) if (!socket.isPaused()) handleOf(socket)?.readStart?.();
  };
}

/**
 * Closes a server and resolves when the last connection has closed. `close` of the HTTP server would destroy
 * connections whose answer is written but not fully sent.
 */
export function closeGently(server: HttpServer): Promise<void> {
  return new Promise((resolve) => void NetServer.prototype.close.call(server, () => resolve()));
}

/**
 * The functions below open addresses in one process and listen on them in others. A listening address exists while any
 * process has it open: clients wait while no worker runs, instead of being refused. Node's cluster module uses the same
 * internal names, `_createServerHandle` and `_listen2`.
 */

interface Handle {
  readonly fd: number;
  /** Writes the address to `out`, TCP only. Returns an error number, or 0. */
  getsockname?(out: Partial<AddressInfo>): number;
  close(): void;
}

type Create = (address: string | null, port: number | null, type: number | null, fd?: number) => Handle | number;

interface NodeServer {
  _handle: Handle;
  _listen2(address: string | null, port: number, addressType: number, backlog: number): void;
}

/** Length of the queue of new connections. The kernel rounds it up to 512. */
const backlog = 511;
const unixSocket = -1;

/** Open address on which no server listens yet. */
export interface BoundSocket {
  readonly fd: number;
  /** Host and port; null for a Unix socket. */
  readonly address: { readonly host: string; readonly port: number } | null;
  /** Closes the socket. Does nothing if it is closed. */
  close(): void;
}

/** Opens a TCP address. Rejects with a system error, such as EADDRINUSE. */
export async function bindTcp(host: string, port: number): Promise<BoundSocket> {
  const { address, family } = await lookup(host);
  return bound(`${host}:${port}`, address, port, family);
}

/** Opens a Unix socket. The mode of its file depends on the umask. */
export function bindUnix(path: string): BoundSocket {
  return bound(path, path, unixSocket, unixSocket);
}

/** Wraps an address that another process has opened and this process has inherited. */
export function inheritedSocket(fd: number): BoundSocket & { readonly handle: Handle } {
  return bound(`file descriptor ${fd}`, null, null, null, fd);
}

/**
 * Makes a server listen on an open address. `fd` is its descriptor in this process. Resolves when the server listens.
 */
export function listenOn(server: Server, fd: number): Promise<void> {
  const { handle } = inheritedSocket(fd);
  const internal = server as unknown as NodeServer;
  return new Promise((resolve, reject) => {
    server.once('error', reject).once('listening', () => {
      server.off('error', reject);
      resolve();
    });
    internal._handle = handle;
    internal._listen2(null, unixSocket, unixSocket, backlog);
  });
}

function bound(name: string, ...socket: Parameters<Create>): BoundSocket & { readonly handle: Handle } {
  const handle = (net as unknown as { _createServerHandle: Create })._createServerHandle(...socket);
  if (typeof handle === 'number') throw systemError(handle, name);
  const found: Partial<AddressInfo> = {};
  const error = handle.getsockname?.(found) ?? 0;
  if (error !== 0) handle.close();
  if (error !== 0) throw systemError(error, name); // libuv reports an address in use only in getsockname
  const { address: host, port } = found;
  const address = host === undefined || port === undefined ? null : { host, port };
  return { handle, fd: handle.fd, address, close: () => handle.close() };
}

function systemError(number: number, name: string): NodeJS.ErrnoException {
  const code = getSystemErrorName(number);
  return Object.assign(new Error(`bind ${code} ${name}`), { code });
}
