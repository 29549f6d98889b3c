import { audit } from './features/audit/feature.js';
import { webhooks } from './features/webhooks/feature.js';
import type { PrimaryFeature } from './primary/features/feature.js';
import type { WorkerFeature } from './worker/features/feature.js';

/** All features. Their hooks are called in this order; a feature may use those before it. */
export const features: readonly (PrimaryFeature & WorkerFeature)[] = [audit, webhooks];
