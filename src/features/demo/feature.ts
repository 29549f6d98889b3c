import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** A small program in place of a language model, with which the service can be tried. */
export const demo = {
  ...emptyFeature,
  name: 'demo',
  clis: {
    kinds: ['demo'],
    standIn: {
      kind: 'demo',
      warning: 'no claude on PATH: the demo model answers. Install claude, or set MODEL_API_CLI.',
    },
    loadAdapters: () => (require('./adapter.js') as typeof import('./adapter.js')).createDemo,
  },
} satisfies PrimaryFeature & WorkerFeature;
