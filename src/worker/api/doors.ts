import type { Request } from 'express';
import type { ModelEntry } from '../../shared/api/models.js';
import { RelayError } from '../../shared/errors.js';
import type { Door, ModelsContext } from '../features/feature.js';
import type { RequestHooks } from '../features/request-hooks.js';
import type { AsyncHandler, Handler, Primary } from '../http/exchange.js';
import { sendJson } from '../http/responses.js';
import { setIgnoredQuery } from '../jobs/job-request.js';

/**
 * Base URLs in the forms that users configure: with /v1, without it, with /v1 twice, with a slash at the end. A request
 * to any of them is routed below /v1, unless the native API has its path.
 */

/** Matches the paths that several APIs share. The native API has /models, too. */
const sharedPaths = /^models\/./;

const target = /^([a-z][a-z0-9+.-]*:\/\/[^/?#]*)?([^?#]*)(.*)$/is;

/** Rewrites the path of a request for a door. The log has the original path. */
export function findDoor(doors: readonly Door[]): Handler {
  return (req, _res, next) => {
    const [, authority = '', path = '', rest = ''] = target.exec(req.url) ?? [];
    const named = trimmed(path);
    const found = pathAmong(doors, named, req) ?? pathBelowV1(path, named);
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
function pathBelowV1(path: string, named: string): string | null {
  const below = belowV1(named);
  if (below !== named) return below === '' ? '/v1' : `/v1/${below}`;
  const isList = below === 'models' && path !== '/models';
  return isList || sharedPaths.test(below) ? `/v1/${below}` : null;
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

/** Returns the paths below /v1 that a client can send a body to. */
function presentPaths({ routes }: Pick<RequestHooks, 'routes'>): string {
  const posts = routes.filter(({ route, post }) => post !== undefined && /^\/v1\/[^{]*$/.test(route));
  const paths = posts.map(({ route }) => route as string).toSorted();
  return `POST ${paths.slice(0, -1).join(', ')} and ${paths.at(-1)}, and GET /v1/models`;
}

/** Answers an unknown path below /v1. Express has already removed /v1 from it. */
export function noSuchDoor(features: Pick<RequestHooks, 'doors' | 'routes'>): Handler {
  const present = presentPaths(features);
  return ({ path }) => {
    const [, name = ''] = path.split('/');
    const isAbsent = features.doors.some(({ absent }) => absent?.has(name));
    const what = isAbsent ? `this service has no ${name.replaceAll('_', ' ')}` : 'no such path';
    throw new RelayError('not_found', `${what}: there are ${present}`);
  };
}

/** Sets the form of all later errors to that of the client's API. */
export function speakAsClient(doors: readonly Door[]): Handler {
  return (req, res, next) => {
    const door = doorOf(req, doors);
    if (door?.requestIdHeader !== undefined) res.set(door.requestIdHeader, res.locals.requestId);
    res.locals.errorForm = door?.errorFormOf(req) ?? null;
    next();
  };
}

/** Returns the API that a request is for: the only one that has its path, or else the first that accepts the request. */
function doorOf(req: Request, doors: readonly Door[]): Door | undefined {
  const [, first, name = ''] = req.path.split('/', 3);
  const owner = first === 'v1' ? doors.find(({ resources }) => resources?.has(name)) : undefined;
  return owner ?? doors.find((door) => door.errorFormOf(req) !== null);
}

/** Whether an API has bodies of models. */
export function haveModels(doors: readonly Door[]): boolean {
  return doors.some(({ models }) => models !== undefined);
}

/** Returns the bodies of models in the API that a request is for, or else in the last API that has such bodies. */
function modelsFor(req: Request, doors: readonly Door[]): NonNullable<Door['models']> {
  const form = doorOf(req, doors)?.models ?? doors.findLast(({ models }) => models !== undefined)?.models;
  if (!form) throw new RelayError('not_found', 'no such path');
  return form;
}

/** Lists the models for SDKs. The list has one page. */
export function getDoorModels(primary: Primary, context: ModelsContext, doors: readonly Door[]): AsyncHandler {
  return async (req, res) => {
    const form = modelsFor(req, doors);
    setIgnoredQuery(req, res, form.knownQuery ?? new Set());
    const { models } = await primary.call('models', {});
    sendJson(res, form.list(defaultFirst(models), context));
  };
}

/** Sorts the default model first. */
export function defaultFirst(models: readonly ModelEntry[]): ModelEntry[] {
  return models.toSorted((a, b) => Number(b.default) - Number(a.default));
}

export function getDoorModel(primary: Primary, context: ModelsContext, doors: readonly Door[]): AsyncHandler {
  return async (req, res) => {
    const { model: found } = await primary.call('model', { name: [req.params.id].flat().join('/') });
    if (found === null) throw new RelayError('not_found', 'no such model', { details: [modelDetail] });
    sendJson(res, modelsFor(req, doors).one(found, context));
  };
}

const modelDetail = { path: 'model', message: 'no such model' };

/** Date at the end of a model's name, as in `claude-opus-4-5-20251101` and `gpt-4o-2024-08-06`. */
const namedDay = /[-@](20\d\d)-?([01]\d)-?([0-3]\d)(?=$|[-:[])/;

/** Returns the day on which a model was released, if its name contains the day; else that of the first start. */
export function createdAt({ id, alias_of: target }: ModelEntry, { firstStartMs }: ModelsContext): Date {
  const [, year, month, day] = namedDay.exec(target ?? id) ?? [];
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`);
  return Number.isNaN(date.getTime()) ? new Date(firstStartMs) : date;
}
