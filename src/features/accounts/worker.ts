import { authenticate, isAdmin } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import type { calls } from './shared.js';

/**
 * Shows all accounts to an administrator, otherwise those that the client owns. Without keys there is no administrator:
 * then the clients also see the accounts without owners.
 */
export function createPart({ primary, authority }: WorkerCore<typeof calls>): WorkerPart {
  const getAccounts: AsyncHandler = async (_req, res) => {
    const owner = isAdmin(res) ? null : res.locals.client;
    sendJson(res, await primary.call('listAccounts', { owner, withOpen: !authority.keys.isNeeded }));
  };
  return { routes: [{ route: '/accounts', get: [authenticate(authority, null), getAccounts] }] };
}
