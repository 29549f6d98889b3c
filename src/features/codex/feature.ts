import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** Codex of OpenAI, as an app server. */
export const codex = {
  ...emptyFeature,
  name: 'codex',
  needs: ['protocols'],
  clis: {
    kinds: ['codex'],
    example: 'codex*2',
    logins: { codex: 'codex login --device-auth' },
    loadAdapters: () => (require('./adapter.js') as typeof import('./adapter.js')).createCodex,
  },
} satisfies PrimaryFeature & WorkerFeature;
