import {
  type ChangeKeyRequest,
  changeKeyRequest,
  type MakeKeyRequest,
  makeKeyRequest,
  rotateKeyRequest,
  textsIn,
} from '../../shared/api/keys.js';
import { type RequestFields, withFields } from '../../shared/features/feature.js';
import type { Actor } from '../../shared/ipc/protocol.js';
import { isAdmin } from '../access/authenticate.js';
import { readBody } from '../http/body.js';
import type { BodyMemory } from '../http/body-memory.js';
import type { AsyncHandler, Primary, Reply } from '../http/exchange.js';
import { sendJson } from '../http/responses.js';

/** Routes for keys over HTTP. */

/** Returns the client of a request as the actor that manages keys or acts as an administrator. */
export function actorOf(res: Reply): Actor {
  const { client, requestId } = res.locals;
  return { client, isAdmin: isAdmin(res), requestId };
}

/** Changes keys. The answer is sent although the change may end the access of the key that asked for it. */
function changeKeys<T>(res: Reply, change: (by: Actor) => Promise<T>): Promise<T> {
  res.locals.changesKeys = true;
  return change(actorOf(res));
}

/** `fields`: options of features. */
export function postKey(primary: Primary, bodies: BodyMemory, fields: RequestFields): AsyncHandler {
  const schema = withFields<MakeKeyRequest>(makeKeyRequest, fields);
  return async (req, res) => {
    const { name, ...options } = await readBody(req, res, bodies, schema);
    const sent = { name, options: textsIn(options) };
    const made = await changeKeys(res, (by) => primary.call('makeKey', { ...sent, by }));
    sendJson(res, made, 201);
  };
}

export function getKeys(primary: Primary): AsyncHandler {
  return async (_req, res) => {
    const { keys } = await primary.call('listKeys', { by: actorOf(res) });
    sendJson(res, { keys, request_id: res.locals.requestId });
  };
}

/** `fields`: options of features. */
export function patchKey(primary: Primary, bodies: BodyMemory, fields: RequestFields): AsyncHandler {
  const schema = withFields<ChangeKeyRequest>(changeKeyRequest, fields);
  return async (req, res) => {
    const options = textsIn(await readBody(req, res, bodies, schema));
    const name = String(req.params.name);
    sendJson(res, await changeKeys(res, (by) => primary.call('changeKey', { name, options, by })));
  };
}

export function deleteKey(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const name = String(req.params.name);
    await changeKeys(res, (by) => primary.call('removeKey', { name, by }));
    sendJson(res, { success: true, name, request_id: res.locals.requestId });
  };
}

export function postRotate(primary: Primary, bodies: BodyMemory): AsyncHandler {
  return async (req, res) => {
    const { old_until: oldUntil = null } = await readBody(req, res, bodies, rotateKeyRequest);
    const name = String(req.params.name);
    sendJson(res, await changeKeys(res, (by) => primary.call('rotateKey', { name, oldUntil, by })));
  };
}
