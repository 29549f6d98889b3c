import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** First port that the kernel may give to any connection or server without a port of its own. */
const firstEphemeral = Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);
/** Number of ports below these, from which the ports of tests are chosen. */
const choices = 12_000;

/**
 * Returns a port that was free just now, for a service whose log is unreadable. The port is random and below those that
 * the kernel gives to others, so that no parallel test takes it in the meantime.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstEphemeral - 1 - Math.floor(Math.random() * Math.min(choices, firstEphemeral - 1025));
    const server = createServer();
    server.listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch {
      continue; // in use
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
