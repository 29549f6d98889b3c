import type { Config } from '../../shared/config/config.js';
import { isLoopback } from '../../shared/config/loopback.js';
import { type BoundSocket, bindTcp, bindUnix, inheritedSocket } from '../../shared/listening-socket.js';

/** The addresses of the service. The primary keeps them open, and every worker listens on all of them. */
export interface Addresses {
  /** Descriptors in this process. */
  readonly fds: readonly number[];
  /** The address that the service is known by. */
  readonly main: NonNullable<BoundSocket['address']>;
  close(): void;
}

/** Calls it while new files get no more rights than the mask leaves. */
export type WithUmask = <T>(mask: number, make: () => T) => T;

/** A Unix socket appears with all rights that are not masked: 0660 is left. */
const socketMask = 0o117;

/** Opens what is configured; sockets passed by systemd stand for host and port. Rejects with the system's error. */
export async function openAddresses(
  config: Config,
  passedFds: readonly number[],
  withUmask: WithUmask,
): Promise<Addresses> {
  const { socketPath } = config;
  const sockets: BoundSocket[] = [];
  try {
    if (socketPath !== null) sockets.push(withUmask(socketMask, () => bindUnix(socketPath)));
    if (passedFds.length === 0) sockets.push(await bindTcp(config.host, config.port));
    for (const fd of passedFds) sockets.push(passedSocket(fd, config.needsKey));
    const main = sockets.find(({ address }) => address !== null)?.address ?? { host: config.host, port: config.port };
    return { fds: sockets.map(({ fd }) => fd), main, close: () => closeAll(sockets) };
  } catch (error) {
    closeAll(sockets);
    throw error;
  }
}

function passedSocket(fd: number, hasKey: boolean): BoundSocket {
  const socket = inheritedSocket(fd);
  if (socket.address === null) throw new Error('a socket passed by systemd is not a TCP socket');
  const { host } = socket.address;
  if (isLoopback(host) || hasKey) return socket;
  throw new Error(`the socket passed by systemd can be reached from other machines at ${host}: set an API key`);
}

function closeAll(sockets: readonly BoundSocket[]): void {
  for (const socket of sockets) socket.close();
}
