import type { PrimaryFeature } from '../../primary/features/feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { deliveryTable } from './deliveries.js';
import { keyOptions } from './key-option.js';
import {
  calls,
  endpoints,
  findFaults,
  findWarnings,
  logEvents,
  metrics,
  requestFields,
  requestHeaders,
  variables,
  type WebhookValues,
} from './shared.js';

/** Notices to the operator's receiver, and callbacks to the URLs that clients name for their background jobs. */
export const webhooks = {
  name: 'webhooks',
  needs: ['stores', 'protocols'],
  ...{ variables, findFaults, findWarnings, calls, endpoints, requestFields, requestHeaders, keyOptions, logEvents },
  ...{ tables: [deliveryTable], metrics },
  loadPrimary: async (values: WebhookValues) => {
    const { createWebhooks } = await import('./primary.js');
    // the code that sends needs memory
    const post = values.MODEL_API_WEBHOOK_SECRET === null ? null : await import('./post.js');
    return createWebhooks(values, post?.noticePoster ?? null);
  },
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
