import { authenticate } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import type { calls } from './shared.js';

export function createPart({ primary, authority }: WorkerCore<typeof calls>): WorkerPart {
  const getDeliveries: AsyncHandler = async (_req, res) => sendJson(res, await primary.call('deliveries', {}));
  return { routes: [{ route: '/webhooks/deliveries', get: [authenticate(authority, 'admin'), getDeliveries] }] };
}
