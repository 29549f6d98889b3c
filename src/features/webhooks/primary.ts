import { hostname } from 'node:os';
import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import type { StoredKind } from '../../primary/features/stored-kind.js';
import type { ClientText } from '../../shared/client.js';
import type { Config } from '../../shared/config/config.js';
import { ignoreFailure } from '../../shared/errors.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { usingStore } from '../stores/contract/full-store.js';
import { openTable, type TableStore } from '../stores/contract/tables.js';
import { Callbacks } from './callbacks.js';
import { type Delivery, deliveryTable } from './deliveries.js';
import { maxShownDeliveries } from './deliveries-body.js';
import { deliveryList } from './delivery-list.js';
import { JobNotices } from './job-notices.js';
import { callbackStart } from './key-option.js';
import { callbackIn, Notices } from './notices.js';
import type { PostNotice } from './post.js';
import { isCallbackOf } from './receiver-url.js';
import { type calls, metrics, type WebhookValues } from './shared.js';
import { Webhooks } from './webhooks.js';

/** `makePoster` is null if there is no secret: then no notice is sent. */
export function createWebhooks(
  values: WebhookValues,
  makePoster: ((version: string) => PostNotice) | null,
): CreatePrimaryPart {
  const { MODEL_API_WEBHOOK_URL: receiver } = values;
  return usingStore((core) => {
    const { host, store, clients, config } = core;
    const deliveries = openTable<Delivery>(store.tables, deliveryTable);
    const startOf = (client: ClientText) =>
      clients.hasAccess(client, host.clock.now()) ? callbackStart(clients.optionsOf(client).featureOptions) : null;
    const webhooks = createSender(values, makePoster, core, deliveries, startOf);
    const callbacks = new Callbacks(webhooks, startOf);
    const notices = webhooks === null || receiver === null ? null : createNotices(webhooks, core);
    const jobNotices = new JobNotices(notices, callbacks);
    const handlers: Handlers<typeof calls> = {
      deliveries: async () => deliveryList(await deliveries.listRows(maxShownDeliveries), receiver),
    };
    return {
      job: {
        admit: ({ client }, form) => callbacks.checkUrl(client, callbackIn(form)),
        ended: (job) => jobNotices.backgroundEnded(job),
      },
      handlers,
      counters: [
        {
          name: 'webhook_attempts_total',
          ...metrics.webhook_attempts_total,
          read: () => webhooks?.counts ?? { delivered: 0, retried: 0, failed: 0, dropped: 0 },
        },
      ],
      storedKinds: [storedNotices(config.store)],
      restored: () => jobNotices.repeatLast(store.jobs, host.clock.now()).catch(ignoreFailure), // the store logs its failure
      start: () => {
        webhooks?.startDeliveries();
        notices?.startChecks();
      },
      stop: async () => webhooks?.closeWebhooks(),
    };
  });
}

function storedNotices(store: Config['store']): StoredKind {
  return {
    kind: 'notices',
    content: 'notices to the operator and callbacks: type, client, amounts and job id; of a callback also its URL',
    place: store.dataPlace,
    ...{
      keptMs: deliveryTable.keepMs,
      until: `${deliveryTable.keepMs / 86_400_000} days after they were created, or until there are too many`,
    },
    ...{ readers: ['admin', 'host', 'receiver'], export: 'GET /webhooks/deliveries', deletion: null },
    variables: ['MODEL_API_STORE', 'MODEL_API_WEBHOOK_URL'],
  };
}

/** Creates what sends notices; null without a secret. Without a receiver, it sends only callbacks. */
function createSender(
  { MODEL_API_WEBHOOK_URL: receiver, MODEL_API_WEBHOOK_SECRET: secret }: WebhookValues,
  makePoster: ((version: string) => PostNotice) | null,
  { host, store }: PrimaryCore,
  deliveries: TableStore<Delivery>,
  startOf: (client: ClientText) => string | null,
): Webhooks | null {
  if (secret === null || makePoster === null) return null;
  const { clock, log, random, product } = host;
  return new Webhooks({
    ...{ receiver, secret, post: makePoster(product.version), clock, log, random },
    ...{ store: deliveries, isShared: store.isShared },
    mayCall: (client, url) => isCallbackOf(url, startOf(client)),
  });
}

function createNotices(webhooks: Webhooks, { host, limitUsesOf, clis }: PrimaryCore): Notices {
  return new Notices({
    send: (notice) => webhooks.send(notice),
    budgets: () => limitUsesOf(null),
    clis,
    clock: host.clock,
    host: hostname(),
  });
}
