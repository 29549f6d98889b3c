import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { frontWarnings, variables } from './shared.js';

/** The port for the agent-check of HAProxy, which then sends this host its part of the requests. */
export const agentCheck = {
  ...emptyFeature,
  ...{ name: 'agent-check', variables, ownPort: 'MODEL_API_AGENT_PORT' },
  findWarnings: frontWarnings,
  openFront: async (values, host, clock) => (await import('./health-agent.js')).openAgent(values, host, clock),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature;
