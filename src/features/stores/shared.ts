import type { FeatureVariables } from '../../shared/config/feature-variables.js';
import { storeFamiliesOf, storeSchema } from '../../shared/config/stores.js';
import { absolutePath } from '../../shared/config/values.js';

export const variables = {
  MODEL_API_STORE: {
    ...{ schema: storeSchema(storeFamiliesOf([])), fallback: 'memory', secrecy: 'none', setting: 'store' },
    meaning:
      'the [store](stores.md): `memory`, `sqlite:/absolute/path.db`, or `redis://[user:password@]host[:port][/database][?prefix=name]` (`rediss://` with TLS)',
  },
  MODEL_API_STATE_FOLDER: {
    ...{ schema: absolutePath, fallback: null, secrecy: 'none', setting: 'namedStateFolder' },
    meaning:
      'folder for [keys that are made over HTTP](clients.md#keys-over-http), unless several hosts share them in Redis. It also holds the sizes of models and the date of the first start',
    shownDefault: '`$STATE_DIRECTORY` of systemd, else `~/.local/state/prompt-relay`',
  },
} as const satisfies FeatureVariables;
