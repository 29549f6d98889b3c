import { lookup } from 'node:dns/promises';
import net, { type AddressInfo, type Server } from 'node:net';
import { getSystemErrorName } from 'node:util';

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
