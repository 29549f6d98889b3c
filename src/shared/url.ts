import { localHost } from './config/loopback.js';

/** Where a service that is bound to this host can be reached from its own machine. */
export function localUrl(host: string, port: number): string {
  const reachable = localHost(host);
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
