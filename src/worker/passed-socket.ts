import { type AddressInfo, Socket } from 'node:net';
import { isLoopback } from '../shared/config/loopback.js';

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/**
 * A socket that systemd has bound, as something to listen on. A server takes it as its very own: by number alone it would
 * be asked of the primary, which closes it with the last worker that listens.
 * Throws where it is not TCP, and where other machines reach it and there is no API key.
 */
export function passedSocket(fd: number, hasKey: boolean): { readonly socket: Socket; readonly address: HostAndPort } {
  const socket = new Socket({ fd, readable: false, writable: false });
  const { address: host, port } = socket.address() as Partial<AddressInfo>;
  if (host === undefined || port === undefined) throw new Error('a socket passed by systemd is not a TCP socket');
  if (!isLoopback(host) && !hasKey) {
    throw new Error(`the socket passed by systemd can be reached from other machines at ${host}: set an API key`);
  }
  return { socket, address: { host, port } };
}
