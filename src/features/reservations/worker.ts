import { actorOf, authenticate, authenticateOperator } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { readBody } from '../../worker/http/body.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import { type calls, reserveRequest, route } from './shared.js';

export function createPart({ primary, authority, jobs }: WorkerCore<typeof calls>): WorkerPart {
  const may = authenticateOperator(authority, 'admin');
  const getAll: AsyncHandler = async (_req, res) => {
    const { reservations } = await primary.call('listReservations', {});
    sendJson(res, { reservations, request_id: res.locals.requestId });
  };
  const post: AsyncHandler = async (req, res) => {
    const order = await readBody(req, res, jobs.bodies, reserveRequest);
    sendJson(res, await primary.call('reserve', { by: actorOf(res), order }), 201);
  };
  const cancel: AsyncHandler = async (req, res) => {
    const id = String(req.params.id);
    await primary.call('cancelReservation', { by: actorOf(res), id });
    sendJson(res, { success: true, id, request_id: res.locals.requestId });
  };
  return {
    routes: [
      { route, get: [authenticate(authority, null), getAll], post: [may, post] },
      { route: `${route}/{id}`, delete: [may, cancel] },
    ],
  };
}
