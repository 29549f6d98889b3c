import type { FeatureVariables } from '../../shared/config/feature-variables.js';
import { storeFamiliesOf, storeSchema } from '../../shared/config/stores.js';

export const variables = {
  MODEL_API_STORE: {
    ...{ schema: storeSchema(storeFamiliesOf([])), fallback: 'memory', secrecy: 'none', setting: 'store' },
    meaning:
      'the [store](stores.md): `memory`, `sqlite:/absolute/path.db`, or `redis://[user:password@]host[:port][/database][?prefix=name]` (`rediss://` with TLS)',
  },
} as const satisfies FeatureVariables;
