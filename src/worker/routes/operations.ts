import { sinceQuery } from '../../shared/api/health.js';
import type { Clock } from '../../shared/clock.js';
import { invalid } from '../../shared/errors.js';
import type { AnswerOf } from '../../shared/ipc/message.js';
import type { PrimaryCalls } from '../../shared/ipc/protocol.js';
import { cached, coalesced } from '../../shared/shared-calls.js';
import type { AsyncHandler, Primary, Reply } from '../http/exchange.js';
import { sendJson, sendWritten } from '../http/send-json.js';

/** The answer changes only with a readiness check, apart from the time since the start. */
const versionAgeMs = 100;

export function getHealth(primary: Primary): AsyncHandler {
  const health = coalesced(() => primary.call('health', {}));
  return async (_req, res) => sendHealth(res, await health());
}

export function postRecheck(primary: Primary): AsyncHandler {
  return async (_req, res) => sendHealth(res, await primary.call('recheck', {}));
}

function sendHealth(res: Reply, { text, isUsable }: AnswerOf<PrimaryCalls, 'health'>): void {
  sendWritten(res, text, isUsable ? 200 : 503);
}

export function getHistory(primary: Primary): AsyncHandler {
  return async (req, res) => sendJson(res, await primary.call('history', { since: sinceOf(req.query.since) }));
}

/** Milliseconds since the epoch; null where nothing was sent. A `+` that a client forgot to escape arrives as a space. */
function sinceOf(value: unknown): number | null {
  if (value === undefined) return null;
  const parsed = sinceQuery.safeParse(typeof value === 'string' ? value.replace(' ', '+') : value);
  if (!parsed.success)
    throw invalid('since', 'must be one ISO 8601 time with its offset, such as 2026-01-31T12:00:00Z');
  return Date.parse(parsed.data);
}

export function getVersion(primary: Primary, clock: Clock): AsyncHandler {
  const version = cached(async () => JSON.stringify(await primary.call('version', {})), versionAgeMs, clock);
  return async (_req, res) => sendWritten(res, await version());
}

export function getModels(primary: Primary): AsyncHandler {
  return async (_req, res) => sendJson(res, await primary.call('models', {}));
}

export function getMetrics(primary: Primary): AsyncHandler {
  return async (_req, res) => {
    const { text } = await primary.call('metrics', {});
    res.type('text/plain; version=0.0.4; charset=utf-8').send(text);
  };
}
