const wildcards: Readonly<Record<string, string>> = {
  '0.0.0.0': '127.0.0.1',
  '::': '::1',
};

/** Where a service that is bound to this address can be reached from its own host. */
export function localUrl(host: string, port: number): string {
  const reachable = wildcards[host] ?? host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
