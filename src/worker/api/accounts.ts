import { isAdmin } from '../access/authenticate.js';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { sendWritten } from '../http/responses.js';

/**
 * Returns all accounts to an administrator, otherwise those that the client owns. Without keys there is no administrator:
 * then the clients also see the accounts without owners.
 */
export function getAccounts(primary: Primary, { isNeeded }: { readonly isNeeded: boolean }): AsyncHandler {
  return async (_req, res) => {
    const owner = isAdmin(res) ? null : res.locals.client;
    const { text } = await primary.call('accounts', { owner, withOpen: !isNeeded });
    sendWritten(res, text);
  };
}
