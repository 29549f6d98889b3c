import { authenticate } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendWritten } from '../../worker/http/responses.js';
import type { calls } from './shared.js';

export function createPart({ primary, authority }: WorkerCore<typeof calls>): WorkerPart {
  const getSetup: AsyncHandler = async (_req, res) => sendWritten(res, (await primary.call('setup', {})).text);
  return { routes: [{ route: '/setup', get: [authenticate(authority, 'admin'), getSetup] }] };
}
