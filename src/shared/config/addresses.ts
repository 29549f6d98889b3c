import type { ConfiguredPort } from './feature-variables.js';
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

type FrontValues = Partial<Pick<Values, 'MODEL_API_AGENT_PORT' | 'MODEL_API_STORE' | 'MODEL_API_TRUST_PROXY'>>;

/** Variables with a port, which must all differ. */
const portNames = ['MODEL_API_PORT', 'MODEL_API_AGENT_PORT'] as const;

/** Returns a fault for each port that is used twice. Ignores variables that could not be read. */
export function portFaults(
  values: Partial<Pick<Values, (typeof portNames)[number]>>,
  ofFeatures: readonly Pick<ConfiguredPort, 'variable' | 'number'>[] = [],
): string[] {
  const corePorts = portNames.map((name) => [name, values[name]] as const);
  const ports = [...corePorts, ...ofFeatures.map(({ variable, number }) => [variable, number] as const)];
  return ports.flatMap(([name, port], index) => {
    const [other] = ports.slice(0, index).find(([, earlier]) => earlier === port) ?? [];
    if (typeof port !== 'number' || port === 0 || other === undefined) return [];
    return [`${name}: ${port} is ${other}: it needs a different port`];
  });
}

/** Returns warnings about settings that a host behind a front lacks. */
export function frontWarnings({
  MODEL_API_AGENT_PORT: agentPort,
  MODEL_API_STORE: store,
  MODEL_API_TRUST_PROXY: trusted = [],
}: FrontValues): string[] {
  if (typeof agentPort !== 'number') return [];
  const warnings: string[] = [];
  if (trusted.length === 0) {
    warnings.push(
      'MODEL_API_AGENT_PORT without MODEL_API_TRUST_PROXY: behind a proxy, all clients count as one address',
    );
  }
  if (store?.isShared !== true) {
    warnings.push(
      'MODEL_API_AGENT_PORT without a store that hosts share: other hosts do not know the conversations of this host',
    );
  }
  return warnings;
}

/** Whether no other machine can read what is sent to the URL. */
export function isPrivateUrl(url: string): boolean {
  return !/^http:/i.test(url) || isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ''));
}
