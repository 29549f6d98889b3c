import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** Protocols of other programs that several features use: JSON-RPC, and requests of this service to other servers. */
export const protocols = { ...emptyFeature, name: 'protocols' } satisfies PrimaryFeature & WorkerFeature;
