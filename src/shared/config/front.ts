import type { Values } from './variables.js';

type FrontValues = Partial<
  Pick<Values, 'MODEL_API_AGENT_PORT' | 'MODEL_API_PORT' | 'MODEL_API_STORE' | 'MODEL_API_TRUST_PROXY'>
>;

/** What can't be, where a front asks this host how it is. Looks only at what could be read. */
export function frontFaults({ MODEL_API_AGENT_PORT: agentPort, MODEL_API_PORT: port }: FrontValues): string[] {
  const isSame = typeof agentPort === 'number' && agentPort !== 0 && agentPort === port;
  return isSame ? [`MODEL_API_AGENT_PORT: ${agentPort} is MODEL_API_PORT: it needs a port of its own`] : [];
}

/** What a host behind a front lacks. */
export function frontWarnings({
  MODEL_API_AGENT_PORT: agentPort,
  MODEL_API_STORE: store,
  MODEL_API_TRUST_PROXY: trusted = [],
}: FrontValues): string[] {
  if (typeof agentPort !== 'number') return [];
  const warnings: string[] = [];
  if (trusted.length === 0) {
    warnings.push(
      'MODEL_API_AGENT_PORT without MODEL_API_TRUST_PROXY: behind a front all clients count as one address',
    );
  }
  if (store?.kind !== 'redis') {
    warnings.push(
      'MODEL_API_AGENT_PORT without a store in Redis: other hosts know nothing of the conversations of this one',
    );
  }
  return warnings;
}
