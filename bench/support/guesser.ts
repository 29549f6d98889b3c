import { connect, type Socket } from 'node:net';
import { keyedGet } from './keyed-get.js';

/**
 * Program that sends requests with different wrong keys, or with a given key, on persistent connections. Arguments:
 * port, number of requests, number of connections, key. Sends the count of each status, and the total time, to its
 * parent.
 */

export interface Guesses {
  readonly elapsedMs: number;
  readonly statuses: Readonly<Record<string, number>>;
}

const [port = 0, total = 0, connections = 1] = process.argv.slice(2, 5).map(Number);
const key = process.argv[5] ?? '';

async function main(): Promise<void> {
  const statuses: Record<string, number> = {};
  const begun = performance.now();
  let sent = 0;
  const lane = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1');
    while (sent < total) {
      const number = sent++;
      const status = await keyedGet(socket, key === '' ? `wrong-key-number-${number}` : key);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
    return socket;
  };
  const sockets = await Promise.all(Array.from({ length: connections }, lane));
  for (const socket of sockets) socket.destroy();
  const guesses: Guesses = { elapsedMs: performance.now() - begun, statuses };
  process.send?.(guesses);
}

void main();
