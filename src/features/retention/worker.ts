import { authenticate } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import { type calls, route } from './shared.js';

export function createPart({ primary, authority }: WorkerCore<typeof calls>): WorkerPart {
  const getRetention: AsyncHandler = async (_req, res) => sendJson(res, await primary.call('retention', {}));
  return { routes: [{ route, get: [authenticate(authority, null), getRetention] }], admitJob: () => ({}) };
}
