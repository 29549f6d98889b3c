import type { PrimaryFeature } from '../../primary/features/feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import * as shared from './shared.js';

/** Notices to the operator's receiver, and callbacks to the URLs that clients name for their background jobs. */
export const webhooks = {
  name: 'webhooks',
  ...shared,
  loadPrimary: async (values: shared.WebhookValues) => {
    const { createWebhooks } = await import('./primary.js');
    // the code that sends needs memory
    const post = values.MODEL_API_WEBHOOK_SECRET === null ? null : await import('./post.js');
    return createWebhooks(values, post?.noticePoster ?? null);
  },
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof shared.variables> & WorkerFeature<typeof shared.calls>;
