import type { AsyncHandler } from '../http/exchange.js';
import { sendJson } from '../http/send-json.js';
import type { Primary } from '../primary.js';

export function getHealth(primary: Primary): AsyncHandler {
  return async (_req, res) => {
    const health = await primary.one('health', {});
    sendJson(res, health, health.status === 'draining' ? 503 : 200);
  };
}

export function getVersion(primary: Primary): AsyncHandler {
  return async (_req, res) => sendJson(res, await primary.one('version', {}));
}
