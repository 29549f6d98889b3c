import { authenticate } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendJson, untilGone, write } from '../../worker/http/responses.js';
import { type calls, exportRoute, exportType, route } from './shared.js';

export function createPart({ primary, authority, guards }: WorkerCore<typeof calls>): WorkerPart {
  const getRetention: AsyncHandler = async (_req, res) => {
    sendJson(res, await primary.call('retention', { client: res.locals.client }));
  };
  const getExport: AsyncHandler = async (_req, res) => {
    const { client, requestId } = res.locals;
    using caller = untilGone(res);
    for await (const { text } of primary.stream('exportData', { client, requestId })) {
      if (!res.headersSent) res.writeHead(200, { 'Content-Type': exportType });
      await write(res, text, caller.signal);
    }
    res.end();
  };
  const mayRead = authenticate(authority, null);
  return {
    routes: [
      { route, get: [mayRead, getRetention] },
      { route: exportRoute, get: [mayRead, guards.namesUser, getExport] },
    ],
  };
}
