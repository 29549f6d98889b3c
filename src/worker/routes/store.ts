import { backupRequest, purgeRequest, verifyRequest } from '../../shared/api/store.js';
import { readBody } from '../http/body.js';
import type { BodyMemory } from '../http/body-memory.js';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { sendJson } from '../http/send-json.js';

export function postBackup(primary: Primary, bodies: BodyMemory): AsyncHandler {
  return async (req, res) => {
    const { name } = await readBody(req, res, bodies, backupRequest);
    sendJson(res, await primary.call('backupStore', { name }));
  };
}

export function postVerify(primary: Primary, bodies: BodyMemory): AsyncHandler {
  return async (req, res) => {
    await readBody(req, res, bodies, verifyRequest);
    sendJson(res, await primary.call('verifyStore', {}));
  };
}

export function postPurge(primary: Primary, bodies: BodyMemory): AsyncHandler {
  return async (req, res) => {
    const { client } = await readBody(req, res, bodies, purgeRequest);
    sendJson(res, await primary.call('purgeClient', { client }));
  };
}
