import type { Request } from 'express';
import { sinceQuery } from '../../shared/api/health.js';
import type { ModelList } from '../../shared/api/models.js';
import { backupRequest, purgeRequest, verifyRequest } from '../../shared/api/store.js';
import { cached, coalesced } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import { invalid } from '../../shared/errors.js';
import type { AnswerOf } from '../../shared/ipc/peer.js';
import type { PrimaryCalls } from '../../shared/ipc/protocol.js';
import { actorOf } from '../access/authenticate.js';
import type { Door, ModelsContext } from '../features/feature.js';
import { readBody } from '../http/body.js';
import type { BodyMemory } from '../http/body-memory.js';
import type { AsyncHandler, Primary, Reply } from '../http/exchange.js';
import { sendJson, sendWritten } from '../http/responses.js';
import { defaultFirst } from './doors.js';

/** How long the answer to GET /version is cached. Apart from the uptime, it changes only with a readiness check. */
const versionAgeMs = 100;

/** `seesPids`: whether a request may see the process ids of the workers. */
export function getHealth(primary: Primary, seesPids: SeesPids): AsyncHandler {
  const whole = coalesced(() => primary.call('health', { withPids: true }));
  const plain = coalesced(() => primary.call('health', { withPids: false }));
  return async (req, res) => sendHealth(res, await (seesPids(req) ? whole() : plain()));
}

type SeesPids = (req: Request) => boolean;

export function postRecheck(primary: Primary): AsyncHandler {
  return async (_req, res) => sendHealth(res, await primary.call('recheck', { by: actorOf(res) }));
}

function sendHealth(res: Reply, { text, isUsable }: AnswerOf<PrimaryCalls, 'health'>): void {
  sendWritten(res, text, isUsable ? 200 : 503);
}

export function getHistory(primary: Primary, seesPids: SeesPids): AsyncHandler {
  return async (req, res) => {
    const query = { since: sinceOf(req.query.since), withPids: seesPids(req) };
    sendJson(res, await primary.call('history', query));
  };
}

/**
 * Returns milliseconds since the epoch, or null if the client sent no time. A `+` that was not escaped arrives as a
 * space.
 */
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

/** Lists the models, also in the forms of APIs whose clients may have a base URL without /v1. */
export function getModels(primary: Primary, context: ModelsContext, doors: readonly Door[]): AsyncHandler {
  return async (_req, res) => {
    const list = await primary.call('models', {});
    const added = doors.map(({ models }) => models?.nativeFields?.(defaultFirst(list.models), context));
    sendJson(res, Object.assign({}, list, ...added) as ModelList);
  };
}

export function postBackup(primary: Primary, bodies: BodyMemory): AsyncHandler {
  return async (req, res) => {
    const { name } = await readBody(req, res, bodies, backupRequest);
    sendJson(res, await primary.call('backupStore', { name, by: actorOf(res) }));
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
    sendJson(res, await primary.call('purgeClient', { client, by: actorOf(res) }));
  };
}
