import type { Socket } from 'node:net';

/** Whether it is a connection on a Unix socket. Its addresses would tell it, but are gone with the connection. */
export function isUnixSocket(socket: Socket): boolean {
  const { _handle } = socket as unknown as { readonly _handle: object | null };
  return _handle?.constructor.name === 'Pipe';
}
