import { coalesced } from '../../shared/async.js';
import { type Authority, isAccepted, maySee } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendWritten } from '../../worker/http/responses.js';
import type { calls, StatusCalls } from './shared.js';
import { StatusViewers } from './viewers.js';

export function createPart({ primary, authority, guards, clock, closing }: WorkerCore<typeof calls>): WorkerPart {
  const viewers = new StatusViewers(primary, clock, closing);
  return {
    routes: [
      { route: '/status', get: [guards.mayCall, getStatus(primary, authority)] },
      { route: '/status/stream', get: [guards.mayCall, getStatusStream(viewers, authority)] },
    ],
  };
}

/**
 * Returns the status. Names are included for keys with the scope `admin`, and for all clients if no key is required.
 */
function getStatus(primary: StatusCalls, authority: Authority): AsyncHandler {
  const named = coalesced(() => primary.call('status', { withNames: true }));
  const nameless = coalesced(() => primary.call('status', { withNames: false }));
  return async (req, res) => {
    const { text } = await (maySee(authority, req, 'admin') ? named() : nameless());
    sendWritten(res, text);
  };
}

function getStatusStream(viewers: StatusViewers, authority: Authority): AsyncHandler {
  return async (req, res) => {
    const withNames = maySee(authority, req, 'admin');
    const isAllowed = () => isAccepted(authority, req) && maySee(authority, req, 'admin') === withNames;
    await viewers.show(res, { client: res.locals.client, withNames, isAllowed });
  };
}
