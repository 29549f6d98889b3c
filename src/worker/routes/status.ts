import { coalesced } from '../../shared/async/shared-calls.js';
import { type Authority, isAccepted, maySee } from '../clients/authenticate.js';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { sendJson, sendWritten } from '../http/send-json.js';
import type { StatusViewers } from '../status/viewers.js';

/** With names for a key with the scope `admin`, and for all where no key is needed. */
export function getStatus(primary: Primary, authority: Authority): AsyncHandler {
  const named = coalesced(() => primary.call('status', { withNames: true }));
  const nameless = coalesced(() => primary.call('status', { withNames: false }));
  return async (req, res) => {
    const { text } = await (maySee(authority, req, 'admin') ? named() : nameless());
    sendWritten(res, text);
  };
}

export function getStatusStream(viewers: StatusViewers, authority: Authority): AsyncHandler {
  return async (req, res) => {
    const withNames = maySee(authority, req, 'admin');
    const isAllowed = () => isAccepted(authority, req) && maySee(authority, req, 'admin') === withNames;
    await viewers.show(res, { client: res.locals.client, withNames, isAllowed });
  };
}

export function getSetup(primary: Primary): AsyncHandler {
  return async (_req, res) => sendJson(res, await primary.call('setup', {}));
}
