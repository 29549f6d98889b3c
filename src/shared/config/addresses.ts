import type { PortNumber } from './feature-variables.js';
import type { Values } from './variables.js';

/** Whether a host name or address is reachable only from this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Wildcard addresses, with the loopback address that each includes. */
const wildcards: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

/** Whether a service bound to this host listens on all addresses of the machine. */
export function isWildcard(host: string): boolean {
  return wildcards.has(host);
}

/** Returns the host through which a service bound to `host` is reachable from its own machine. */
function localHost(host: string): string {
  return wildcards.get(host) ?? host;
}

/** Returns the URL through which a service is reachable from its own machine. */
export function localUrl(host: string, port: number): string {
  const reachable = localHost(host);
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** Returns a fault for each port that is used twice. Ignores variables that could not be read. */
export function portFaults(
  { MODEL_API_PORT: mainPort }: Partial<Pick<Values, 'MODEL_API_PORT'>>,
  ofFeatures: readonly PortNumber[] = [],
): string[] {
  const ports = [{ variable: 'MODEL_API_PORT', number: mainPort }, ...ofFeatures];
  return ports.flatMap(({ variable, number }, index) => {
    const other = ports.slice(0, index).find((earlier) => earlier.number === number);
    if (typeof number !== 'number' || number === 0 || other === undefined) return [];
    return [`${variable}: ${number} is ${other.variable}: it needs a different port`];
  });
}

/** Whether no other machine can read what is sent to the URL. */
export function isPrivateUrl(url: string): boolean {
  return !/^http:/i.test(url) || isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ''));
}
