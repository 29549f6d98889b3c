import type { Server } from 'node:http';
import type { Clock } from '../shared/clock.js';

export type Address = { readonly host: string; readonly port: number } | { readonly path: string };

export function listen(server: Server, address: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

const maxCloseMs = 2000;

/** Resolves when no response is open any more, after 2 s at the latest. */
export async function stopListening(server: Server, clock: Clock): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const stopTimer = clock.after(maxCloseMs, () => server.closeAllConnections());
  await closed.finally(stopTimer);
}
