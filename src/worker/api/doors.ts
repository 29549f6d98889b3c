import type { Request } from 'express';
import { anthropicList, anthropicModel, createdAt, type ModelsContext } from '../../features/anthropic/models.js';
import type { ModelEntry, OpenAiModel } from '../../shared/api/models.js';
import { RelayError } from '../../shared/errors.js';
import type { Door } from '../features/feature.js';
import type { AsyncHandler, ErrorForm, Handler, Primary } from '../http/exchange.js';
import { sendJson } from '../http/responses.js';
import { setIgnoredQuery } from '../jobs/job-request.js';
import { anthropicErrors, openAiErrors } from '../jobs/sdk-errors.js';

/**
 * Base URLs in the forms that users configure: with /v1, without it, with /v1 twice, with a slash at the end. A request
 * to any of them is routed below /v1, unless the native API has its path.
 */

/**
 * Matches the beginning of a door's path. `GET /chat/{conversation_id}` has no conflict, because no id is
 * `completions`.
 */
const doors = /^(?:batches|chat\/completions|completions|files|responses|messages)(?:\/|$)|^models\/./;

/** Paths of OpenAI's and Anthropic's APIs that this service does not support. No native path begins with one. */
const absentHere = new Set(
  (
    'assistants audio complete containers conversations edits embeddings engines evals ' +
    'fine_tuning images moderations organization realtime rerank skills threads uploads vector_stores videos'
  ).split(' '),
);
/** Paths of `absentHere` that Anthropic's API has. */
const anthropicOnly = new Set(['complete', 'skills']);

/** Paths here that Anthropic's API does not have. */
const openAiOnly = new Set(['batches', 'chat', 'completions', 'responses']);

/** Whether only OpenAI's API has this path. A gateway may add Anthropic's version header to all requests. */
function isOnlyOpenAi(path: string): boolean {
  const [, , name = ''] = path.split('/', 3);
  return openAiOnly.has(name) || (absentHere.has(name) && !anthropicOnly.has(name));
}

const target = /^([a-z][a-z0-9+.-]*:\/\/[^/?#]*)?([^?#]*)(.*)$/is;

/** Rewrites the path of a request for a door. The log has the original path. */
export function findDoor(others: readonly Door[]): Handler {
  return (req, _res, next) => {
    const [, authority = '', path = '', rest = ''] = target.exec(req.url) ?? [];
    const named = trimmed(path);
    const found = pathAmong(others, named) ?? doorPath(path, named, req.get('anthropic-version') !== undefined);
    if (found !== null && found !== path) req.url = authority + found + rest;
    next();
  };
}

function pathAmong(doors: readonly Door[], named: string): string | null {
  for (const door of doors) {
    const found = door.findPath?.(named) ?? null;
    if (found !== null) return found;
  }
  return null;
}

/**
 * Returns the path below /v1, or null if the path belongs to no door. `named`: the path without slashes at both ends.
 * `isAnthropic` decides about /models, which the native API has too.
 */
function doorPath(path: string, named: string, isAnthropic: boolean): string | null {
  // A base URL may contain /v1 twice, and Anthropic's SDK adds it once more.
  const below = withoutV1(withoutV1(withoutV1(named)));
  if (below !== named) return below === '' ? '/v1' : `/v1/${below}`;
  const [first = ''] = below.split('/', 1);
  const isList = below === 'models' && (isAnthropic || path !== '/models');
  const isDoor = doors.test(below) || absentHere.has(first) || isList;
  return isDoor ? `/v1/${below}` : null;
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

const present =
  'POST /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, /v1/messages/count_tokens, /v1/files, /v1/batches and /v1/messages/batches, and GET /v1/models';

/** Answers an unknown path below /v1. Express has already removed /v1 from it. */
export const noSuchDoor: Handler = ({ path }) => {
  const [, name = ''] = path.split('/');
  const what = absentHere.has(name) ? `this service has no ${name.replaceAll('_', ' ')}` : 'no such path';
  throw new RelayError('not_found', `${what}: there are ${present}`);
};

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

/**
 * Whether the client expects Anthropic's form. OpenAI's API has GET /v1/models too, but its SDKs send no
 * `anthropic-version`; a gateway may add it to all requests.
 */
export function speaksAnthropic(req: Request): boolean {
  if (isOnlyOpenAi(req.path)) return false;
  return req.get('anthropic-version') !== undefined || /^\/v1\/messages(\/|$)/.test(req.path);
}

/** Sets the form of all later errors to that of the client's API. */
export function speakAsClient(doors: readonly Door[]): Handler {
  return (req, res, next) => {
    for (const door of doors) res.locals.errorForm ??= door.errorFormOf(req);
    if (!isAtDoor(req)) return next();
    const isAnthropic = speaksAnthropic(req);
    const form: ErrorForm = isAnthropic ? anthropicErrors : openAiErrors;
    res.locals.errorForm = form;
    if (isAnthropic) res.set('request-id', res.locals.requestId);
    next();
  };
}

/** Anthropic's SDK marks its beta calls, which are the same here. */
const knownQuery: ReadonlySet<string> = new Set(['beta']);

/** Lists the models for both SDKs, the default model first. The list has one page. */
export function getDoorModels(primary: Primary, context: ModelsContext): AsyncHandler {
  return async (req, res) => {
    setIgnoredQuery(req, res, knownQuery);
    const { models } = await primary.call('models', {});
    sendJson(res, speaksAnthropic(req) ? anthropicList(sorted(models), context) : openAiList(models, context));
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

export function getDoorModel(primary: Primary, context: ModelsContext): AsyncHandler {
  return async (req, res) => {
    const { model: found } = await primary.call('model', { name: [req.params.id].flat().join('/') });
    if (found === null) throw new RelayError('not_found', 'no such model', { details: [modelDetail] });
    sendJson(res, speaksAnthropic(req) ? anthropicModel(found, context) : openAiModel(found, context));
  };
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
