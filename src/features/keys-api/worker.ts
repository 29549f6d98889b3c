import { type RequestFields, withFields } from '../../shared/features/feature.js';
import type { Actor } from '../../shared/ipc/protocol.js';
import { actorOf, authenticateOperator } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { readBody } from '../../worker/http/body.js';
import type { BodyMemory } from '../../worker/http/body-memory.js';
import type { AsyncHandler, Reply } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import {
  type ChangeKeyRequest,
  changeKeyRequest,
  type MakeKeyRequest,
  makeKeyRequest,
  rotateKeyRequest,
  textsIn,
} from './bodies.js';
import type { calls } from './shared.js';

type KeyCalls = WorkerCore<typeof calls>['primary'];

export function createPart({ primary, authority, jobs, keyFields }: WorkerCore<typeof calls>): WorkerPart {
  const { bodies } = jobs;
  const may = authenticateOperator(authority, null);
  return {
    routes: [
      { route: '/keys', get: [may, getKeys(primary)], post: [may, postKey(primary, bodies, keyFields)] },
      {
        route: '/keys/{name}',
        patch: [may, patchKey(primary, bodies, keyFields)],
        delete: [may, deleteKey(primary)],
      },
      { route: '/keys/{name}/rotate', post: [may, postRotate(primary, bodies)] },
    ],
  };
}

/** Changes keys. The answer is sent although the change may end the access of the key that asked for it. */
function changeKeys<T>(res: Reply, change: (by: Actor) => Promise<T>): Promise<T> {
  res.locals.changesKeys = true;
  return change(actorOf(res));
}

/** `fields`: options of features. */
function postKey(primary: KeyCalls, bodies: BodyMemory, fields: RequestFields): AsyncHandler {
  const schema = withFields<MakeKeyRequest>(makeKeyRequest, fields);
  return async (req, res) => {
    const { name, ...options }: MakeKeyRequest = await readBody(req, res, bodies, schema);
    const sent = { name, options: textsIn(options) };
    const made = await changeKeys(res, (by) => primary.call('makeKey', { ...sent, by }));
    sendJson(res, made, 201);
  };
}

function getKeys(primary: KeyCalls): AsyncHandler {
  return async (_req, res) => {
    const { keys } = await primary.call('listKeys', { by: actorOf(res) });
    sendJson(res, { keys, request_id: res.locals.requestId });
  };
}

/** `fields`: options of features. */
function patchKey(primary: KeyCalls, bodies: BodyMemory, fields: RequestFields): AsyncHandler {
  const schema = withFields<ChangeKeyRequest>(changeKeyRequest, fields);
  return async (req, res) => {
    const options = textsIn(await readBody(req, res, bodies, schema));
    const name = String(req.params.name);
    sendJson(res, await changeKeys(res, (by) => primary.call('changeKey', { name, options, by })));
  };
}

function deleteKey(primary: KeyCalls): AsyncHandler {
  return async (req, res) => {
    const name = String(req.params.name);
    await changeKeys(res, (by) => primary.call('removeKey', { name, by }));
    sendJson(res, { success: true, name, request_id: res.locals.requestId });
  };
}

function postRotate(primary: KeyCalls, bodies: BodyMemory): AsyncHandler {
  return async (req, res) => {
    const { old_until: oldUntil = null } = await readBody(req, res, bodies, rotateKeyRequest);
    const name = String(req.params.name);
    sendJson(res, await changeKeys(res, (by) => primary.call('rotateKey', { name, oldUntil, by })));
  };
}
