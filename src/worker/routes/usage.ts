import type { Request } from 'express';
import { dayQuery } from '../../shared/api/usage.js';
import { invalid } from '../../shared/errors.js';
import { type Authority, maySee } from '../clients/authenticate.js';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { sendWritten } from '../http/send-json.js';

/** Everything for a key with the scope `admin`; else the rows of the one who asks. */
export function getUsage(primary: Primary, authority: Authority): AsyncHandler {
  return async (req, res) => {
    const [since, until] = [dayOf(req.query, 'since'), dayOf(req.query, 'until')];
    if (since !== null && until !== null && until < since) throw invalid('until', 'must not be before since');
    const isAdmin = authority.keys.isNeeded && maySee(authority, req, 'admin');
    const order = { client: res.locals.client, isAdmin, since, until };
    sendWritten(res, (await primary.call('usage', order)).text);
  };
}

function dayOf(query: Request['query'], name: string): string | null {
  const value = query[name];
  if (value === undefined) return null;
  const parsed = dayQuery.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(name, 'must be one day such as 2026-01-31');
}
