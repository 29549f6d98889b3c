/** Whether a host, by name or address, can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Each wildcard address with the loopback address that it takes in. */
const wildcards: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

/** Whether a service bound to this host listens at every address of the machine. */
export function isWildcard(host: string): boolean {
  return wildcards.has(host);
}

/** Where a service bound to this host is reached from its own machine. */
export function localHost(host: string): string {
  return wildcards.get(host) ?? host;
}
