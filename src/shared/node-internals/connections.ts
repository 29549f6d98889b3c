import type { SendHandle } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import type { Server as HttpServer, IncomingMessage } from 'node:http';
import net, { type AddressInfo, Server as NetServer, type Server, Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';

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
 * every write resets it, so a ping every 15 s would keep a stream open whose client reads nothing.
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
export function closeGently(server: HttpServer): Promise<void> {
  return new Promise((resolve) => void NetServer.prototype.close.call(server, () => resolve()));
}

/**
 * Addresses that one process opens and others listen on. A listening address lives as long as any process has it open,
 * so clients wait while there is no worker, instead of being refused. Node's cluster module uses the same two names,
 * `_createServerHandle` and `_listen2`.
 */

interface Handle {
  readonly fd: number;
  /** TCP only. Returns an error number, or 0. */
  getsockname?(out: Partial<AddressInfo>): number;
  close(): void;
}

type Create = (address: string | null, port: number | null, type: number | null, fd?: number) => Handle | number;

interface NodeServer {
  _handle: Handle;
  _listen2(address: string | null, port: number, addressType: number, backlog: number): void;
}

/** What the kernel rounds up to 512 connections. */
const backlog = 511;
const unixSocket = -1;

/** An address that is open and not listened on yet. */
export interface BoundSocket {
  readonly fd: number;
  /** Null for a Unix socket. */
  readonly address: { readonly host: string; readonly port: number } | null;
  /** Does nothing when it is closed already. */
  close(): void;
}

/** Opens a TCP address. Rejects with the error of the system, such as EADDRINUSE. */
export async function bindTcp(host: string, port: number): Promise<BoundSocket> {
  const { address, family } = await lookup(host);
  return bound(`${host}:${port}`, address, port, family);
}

/** Opens a Unix socket. The file appears with the mode that the umask leaves. */
export function bindUnix(path: string): BoundSocket {
  return bound(path, path, unixSocket, unixSocket);
}

/** An address that was opened by another process and inherited. */
export function inheritedSocket(fd: number): BoundSocket & { readonly handle: Handle } {
  return bound(`file descriptor ${fd}`, null, null, null, fd);
}

/** Has a server listen on an open address, by its number in this process. Resolves when it listens. */
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
  if (error !== 0) throw systemError(error, name); // an address in use: libuv keeps that error until here
  const { address: host, port } = found;
  const address = host === undefined || port === undefined ? null : { host, port };
  return { handle, fd: handle.fd, address, close: () => handle.close() };
}

function systemError(number: number, name: string): NodeJS.ErrnoException {
  const code = getSystemErrorName(number);
  return Object.assign(new Error(`bind ${code} ${name}`), { code });
}
