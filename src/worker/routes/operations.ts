import type { Request } from 'express';
import { sinceQuery } from '../../shared/api/health.js';
import type { ModelsBody } from '../../shared/api/models.js';
import { cached, coalesced, oneAtATime } from '../../shared/async/shared-calls.js';
import { type Clock, endOfLoopTurn } from '../../shared/clock.js';
import { invalid } from '../../shared/errors.js';
import type { AnswerOf } from '../../shared/ipc/message.js';
import type { PrimaryCalls } from '../../shared/ipc/protocol.js';
import { openAiList } from '../doors/models.js';
import type { AsyncHandler, Primary, Reply } from '../http/exchange.js';
import { sendJson, sendTyped, sendWritten } from '../http/send-json.js';

/** The answer changes only with a readiness check, apart from the time since the start. */
const versionAgeMs = 100;

/** `seesPids`: whether a request may see the process ids of the workers. */
export function getHealth(primary: Primary, seesPids: SeesPids): AsyncHandler {
  const whole = coalesced(() => primary.call('health', { withPids: true }));
  const plain = coalesced(() => primary.call('health', { withPids: false }));
  return async (req, res) => sendHealth(res, await (seesPids(req) ? whole() : plain()));
}

type SeesPids = (req: Request) => boolean;

export function postRecheck(primary: Primary): AsyncHandler {
  return async (_req, res) => sendHealth(res, await primary.call('recheck', {}));
}

function sendHealth(res: Reply, { text, isUsable }: AnswerOf<PrimaryCalls, 'health'>): void {
  sendWritten(res, text, isUsable ? 200 : 503);
}

export function getHistory(primary: Primary, seesPids: SeesPids): AsyncHandler {
  return async (req, res) => {
    const asked = { since: sinceOf(req.query.since), withPids: seesPids(req) };
    sendJson(res, await primary.call('history', asked));
  };
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

/** With the list that the SDKs of OpenAI look for, because a base URL without /v1 leads here. */
export function getModels(primary: Primary): AsyncHandler {
  return async (_req, res) => {
    const { count, models } = await primary.call('models', {});
    const body: ModelsBody = { count, models, ...openAiList(models) };
    sendJson(res, body);
  };
}

/** All who ask at once are sent the same bytes, which have crossed from the primary once. The primary limits how often. */
export function getMetrics(primary: Primary): AsyncHandler {
  const exposition = oneAtATime(async () => Buffer.from((await primary.call('metrics', {})).text));
  let sent: Promise<void> = Promise.resolve();
  return async (_req, res) => {
    const bytes = await exposition();
    sent = sent.then(endOfLoopTurn); // the bytes are many: between two answers of a crowd other requests have their turn
    await sent;
    sendTyped(res, 'text/plain; version=0.0.4; charset=utf-8', bytes);
  };
}
