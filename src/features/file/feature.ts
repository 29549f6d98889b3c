import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** Adapters in JavaScript files of the operator. */
export const file = {
  ...emptyFeature,
  ...{ name: 'file', needs: ['acp'] },
  clis: {
    kinds: [],
    form: {
      pattern: /^\/.*\.[cm]?js$/,
      text: 'the absolute path of an adapter (.js, .cjs, .mjs)',
      summary: 'the path of an adapter',
    },
    loadAdapters: () => (require('./adapter-module.js') as typeof import('./adapter-module.js')).createFromFile,
  },
} satisfies PrimaryFeature & WorkerFeature;
