import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { acpAgents, variables } from './shared.js';

/** Agents of the Agent Client Protocol. */
export const acp = {
  ...emptyFeature,
  name: 'acp',
  needs: ['protocols'],
  variables,
  clis: {
    kinds: acpAgents,
    commandNeeded: ['acp'],
    logins: { gemini: 'gemini', opencode: 'opencode auth login', qwen: 'qwen' },
    loadAdapters: () => (require('./agents.js') as typeof import('./agents.js')).createAgent,
  },
} satisfies PrimaryFeature<typeof variables> & WorkerFeature;
