import type { Request } from 'express';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { sendWritten } from '../http/responses.js';

/** Returns all accounts to callers that may see other clients, otherwise those that the client owns. */
export function getAccounts(primary: Primary, seesAll: (req: Request) => boolean): AsyncHandler {
  return async (req, res) => {
    const { text } = await primary.call('accounts', { owner: seesAll(req) ? null : res.locals.client });
    sendWritten(res, text);
  };
}
