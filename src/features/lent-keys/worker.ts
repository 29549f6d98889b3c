import type { Request } from 'express';
import type { WorkerKey } from '../../shared/ipc/protocol.js';
import { actorOf, authenticateOperator } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { readBody } from '../../worker/http/body.js';
import type { AsyncHandler, Reply } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import { type calls, lendRequest } from './shared.js';

export function createPart({ primary, authority, jobs }: WorkerCore<typeof calls>): WorkerPart {
  const may = authenticateOperator(authority, null);
  const getKeys: AsyncHandler = async (_req, res) => {
    const { keys } = await primary.call('listLentKeys', borrowerOf(res));
    sendJson(res, { keys, request_id: res.locals.requestId });
  };
  const postKey: AsyncHandler = async (req, res) => {
    const { seconds } = await readBody(req, res, jobs.bodies, lendRequest);
    const { digest = null } = { ...res.locals.key } as Partial<WorkerKey>; // a person has none
    sendJson(res, await primary.call('lendKey', { ...borrowerOf(res), digest, seconds }), 201);
  };
  const deleteKey: AsyncHandler = async (req: Request, res) => {
    res.locals.changesKeys = true; // the request may end its own key
    const { id } = await primary.call('endLentKey', { ...borrowerOf(res), id: String(req.params.id) });
    sendJson(res, { success: true, id, request_id: res.locals.requestId });
  };
  return {
    routes: [
      { route: '/lent-keys', get: [may, getKeys], post: [may, postKey] },
      { route: '/lent-keys/{id}', delete: [may, deleteKey] },
    ],
  };
}

function borrowerOf(res: Reply) {
  const { lentId = null } = { ...res.locals.key };
  return { by: actorOf(res), lentId };
}
