import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Clock } from '../shared/clock.js';

export type Address = { readonly host: string; readonly port: number } | { readonly path: string } | Socket;

export function listen(server: Server, address: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** At shutdown: resolves when no response is open any more, after `limitMs` at the latest. */
export async function stopListening(server: Server, clock: Clock, limitMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const stopTimer = clock.after(limitMs, () => server.closeAllConnections());
  await closed.finally(stopTimer);
}

/**
 * For a worker with a successor: takes no new connection and resolves when the last one has gone. An idle connection is
 * left to its keep-alive limit, because closing it could cross with the client's next request and lose that.
 */
export async function letGo(server: Server, clock: Clock, limitMs: number): Promise<void> {
  // The HTTP server's own close would close idle connections at once.
  const closed = new Promise<void>((resolve) => void NetServer.prototype.close.call(server, () => resolve()));
  const stopTimer = clock.after(limitMs, () => server.closeAllConnections());
  await closed.finally(stopTimer);
}
