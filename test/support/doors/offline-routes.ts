import { offlineRoutes as anthropicRoutes } from '../../../src/features/anthropic/offline.js';
import { offlineRoutes as openAiRoutes } from '../../../src/features/openai/offline.js';
import type { OfflineRoutes } from '../../../src/worker/jobs/offline-routes.js';

/** Offline routes of all APIs. */
export const offlineRoutes: OfflineRoutes = { ...anthropicRoutes, ...openAiRoutes };
