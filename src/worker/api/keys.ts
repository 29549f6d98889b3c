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

/** `fields`: options of features. */
export function postKey(primary: Primary, bodies: BodyMemory, fields: RequestFields): AsyncHandler {
  const schema = withFields<MakeKeyRequest>(makeKeyRequest, fields);
  return async (req, res) => {
    const { name, ...options } = await readBody(req, res, bodies, schema);
    const made = await primary.call('makeKey', { name, options: textsIn(options), by: actorOf(res) });
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
    sendJson(res, await primary.call('changeKey', { name: String(req.params.name), options, by: actorOf(res) }));
  };
}

export function deleteKey(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const name = String(req.params.name);
    await primary.call('removeKey', { name, by: actorOf(res) });
    sendJson(res, { success: true, name, request_id: res.locals.requestId });
  };
}

export function postRotate(primary: Primary, bodies: BodyMemory): AsyncHandler {
  return async (req, res) => {
    const { old_until: oldUntil = null } = await readBody(req, res, bodies, rotateKeyRequest);
    sendJson(res, await primary.call('rotateKey', { name: String(req.params.name), oldUntil, by: actorOf(res) }));
  };
}
