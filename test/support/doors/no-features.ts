import { RequestHooks } from '../../../src/worker/features/request-hooks.js';

/** Hooks of a worker without features. */
export const noFeatures = new RequestHooks([], {});
