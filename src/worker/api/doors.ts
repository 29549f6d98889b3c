import type { Request } from 'express';
import type { ModelEntry, OpenAiModel } from '../../shared/api/models.js';
import { RelayError } from '../../shared/errors.js';
import type { Door, FeatureRoute, ModelsContext } from '../features/feature.js';
import type { RequestHooks } from '../features/request-hooks.js';
import type { AsyncHandler, Handler, Primary } from '../http/exchange.js';
import { sendJson } from '../http/responses.js';
import { setIgnoredQuery } from '../jobs/job-request.js';
import { openAiErrors } from '../jobs/sdk-errors.js';

/**
 * Base URLs in the forms that users configure: with /v1, without it, with /v1 twice, with a slash at the end. A request
 * to any of them is routed below /v1, unless the native API has its path.
 */

/**
 * Matches the beginning of a door's path. `GET /chat/{conversation_id}` has no conflict, because no id is
 * `completions`.
 */
const doors = /^(?:batches|chat\/completions|completions|files|responses)(?:\/|$)|^models\/./;

/** Paths of OpenAI's API that this service does not support. No native path begins with one. */
const absentHere = new Set(
  (
    'assistants audio containers conversations edits embeddings engines evals ' +
    'fine_tuning images moderations organization realtime rerank threads uploads vector_stores videos'
  ).split(' '),
);

/** Paths here that other APIs below /v1 do not have. */
const openAiOnly = new Set(['batches', 'chat', 'completions', 'responses']);

/** Whether only OpenAI's API has this path. A gateway may add the headers of other APIs to all requests. */
export function isOnlyOpenAi(path: string): boolean {
  const [, , name = ''] = path.split('/', 3);
  return openAiOnly.has(name) || absentHere.has(name);
}

const target = /^([a-z][a-z0-9+.-]*:\/\/[^/?#]*)?([^?#]*)(.*)$/is;

/** Rewrites the path of a request for a door. The log has the original path. */
export function findDoor(others: readonly Door[]): Handler {
  return (req, _res, next) => {
    const [, authority = '', path = '', rest = ''] = target.exec(req.url) ?? [];
    const named = trimmed(path);
    const found = pathAmong(others, named, req) ?? doorPath(path, named);
    if (found !== null && found !== path) req.url = authority + found + rest;
    next();
  };
}

function pathAmong(doors: readonly Door[], named: string, req: Request): string | null {
  for (const door of doors) {
    const found = door.findPath?.(named, req) ?? null;
    if (found !== null) return found;
  }
  return null;
}

/** Returns the path below /v1, or null if the path belongs to no door. `named`: the path without slashes at both ends. */
function doorPath(path: string, named: string): string | null {
  const below = belowV1(named);
  if (below !== named) return below === '' ? '/v1' : `/v1/${below}`;
  const [first = ''] = below.split('/', 1);
  const isList = below === 'models' && path !== '/models'; // the native API has /models, too
  const isDoor = doors.test(below) || absentHere.has(first) || isList;
  return isDoor ? `/v1/${below}` : null;
}

/** Removes /v1 from a path. A base URL may contain it twice, and an SDK may add it once more. */
export function belowV1(named: string): string {
  return withoutV1(withoutV1(withoutV1(named)));
}

/** Removes the slashes at both ends. A regular expression for both would be slow for many slashes. */
function trimmed(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end--;
  return path.slice(0, end).replace(/^\/+/, '');
}

function withoutV1(path: string): string {
  return path === 'v1' || path.startsWith('v1/') ? path.slice(2).replace(/^\/+/, '') : path;
}

function isAtDoor({ path }: Pick<Request, 'path'>): boolean {
  return path === '/v1' || path.startsWith('/v1/');
}

const jobPaths = ['/v1/chat/completions', '/v1/completions', '/v1/responses'];

/** Returns the paths below /v1 that a client can send a body to. */
function presentPaths(added: readonly FeatureRoute[]): string {
  const posts = added.filter(({ route, post }) => post !== undefined && /^\/v1\/[^{]*$/.test(route));
  const routes = posts.map(({ route }) => route);
  const isBatch = (route: string) => route.endsWith('/batches');
  const more = [...routes.filter((route) => !isBatch(route)), '/v1/files', '/v1/batches', ...routes.filter(isBatch)];
  const paths = [...jobPaths, ...more];
  return `POST ${paths.slice(0, -1).join(', ')} and ${paths.at(-1)}, and GET /v1/models`;
}

/** Answers an unknown path below /v1. Express has already removed /v1 from it. */
export function noSuchDoor({ doors: others, routes }: Pick<RequestHooks, 'doors' | 'routes'>): Handler {
  const present = presentPaths(routes);
  return ({ path }) => {
    const [, name = ''] = path.split('/');
    const isAbsent = absentHere.has(name) || others.some(({ absent }) => absent?.has(name));
    const what = isAbsent ? `this service has no ${name.replaceAll('_', ' ')}` : 'no such path';
    throw new RelayError('not_found', `${what}: there are ${present}`);
  };
}

/** Unsupported calls of the Responses API whose paths look like that of a stored response, with the alternative. */
const absentResponsesCalls = {
  compact: 'does not compact a conversation: its client can send less of the history',
  input_tokens: 'does not count the tokens of a response: POST /v1/messages/count_tokens counts those of a message',
};

export const absentResponsesPaths = Object.keys(absentResponsesCalls).map((name) => `/v1/responses/${name}`);

export const noSuchResponsesCall: Handler = ({ path }) => {
  const name = path.slice(path.lastIndexOf('/') + 1) as keyof typeof absentResponsesCalls;
  throw new RelayError('not_found', `this service ${absentResponsesCalls[name]}`);
};

/** Sets the form of all later errors to that of the client's API. */
export function speakAsClient(others: readonly Door[]): Handler {
  return (req, res, next) => {
    const door = doorOf(req, others);
    if (door?.requestIdHeader !== undefined) res.set(door.requestIdHeader, res.locals.requestId);
    res.locals.errorForm = door?.errorFormOf(req) ?? (isAtDoor(req) ? openAiErrors : null);
    next();
  };
}

/** Returns the API of a feature that a request is for. */
export function doorOf(req: Request, others: readonly Door[]): Door | undefined {
  return others.find((door) => door.errorFormOf(req) !== null);
}

/** Anthropic's SDK marks its beta calls, which are the same here. */
const knownQuery: ReadonlySet<string> = new Set(['beta']);

/** Lists the models for SDKs, the default model first. The list has one page. */
export function getDoorModels(primary: Primary, context: ModelsContext, others: readonly Door[]): AsyncHandler {
  return async (req, res) => {
    setIgnoredQuery(req, res, knownQuery);
    const { models } = await primary.call('models', {});
    const form = doorOf(req, others)?.models;
    sendJson(res, form === undefined ? openAiList(models, context) : form.list(sorted(models), context));
  };
}

export function openAiList(
  models: readonly ModelEntry[],
  context: ModelsContext,
): { object: 'list'; data: OpenAiModel[] } {
  return { object: 'list', data: sorted(models).map((model) => openAiModel(model, context)) };
}

function sorted(models: readonly ModelEntry[]): ModelEntry[] {
  return models.toSorted((a, b) => Number(b.default) - Number(a.default));
}

export function getDoorModel(primary: Primary, context: ModelsContext, others: readonly Door[]): AsyncHandler {
  return async (req, res) => {
    const { model: found } = await primary.call('model', { name: [req.params.id].flat().join('/') });
    if (found === null) throw new RelayError('not_found', 'no such model', { details: [modelDetail] });
    const form = doorOf(req, others)?.models;
    sendJson(res, form === undefined ? openAiModel(found, context) : form.one(found, context));
  };
}

/** Date at the end of a model's name, as in `claude-opus-4-5-20251101` and `gpt-4o-2024-08-06`. */
const namedDay = /[-@](20\d\d)-?([01]\d)-?([0-3]\d)(?=$|[-:[])/;

/** Returns the day on which a model was released, if its name contains the day; else that of the first start. */
export function createdAt({ id, alias_of: target }: ModelEntry, { firstStartMs }: ModelsContext): Date {
  const [, year, month, day] = namedDay.exec(target ?? id) ?? [];
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`);
  return Number.isNaN(date.getTime()) ? new Date(firstStartMs) : date;
}

const modelDetail = { path: 'model', message: 'no such model' };

function openAiModel(model: ModelEntry, context: ModelsContext): OpenAiModel {
  const { id, alias_of: target, capabilities } = model;
  const { max_input_tokens: input, max_tokens: output } = model;
  return {
    id,
    object: 'model',
    created: Math.floor(createdAt(model, context).getTime() / 1000),
    owned_by: 'prompt-relay',
    ...(target !== undefined && { alias_of: target }),
    ...(capabilities !== undefined && { capabilities }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_tokens: output }),
  };
}
