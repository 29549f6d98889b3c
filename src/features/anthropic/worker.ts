import type { IncomingHttpHeaders } from 'node:http';
import { belowV1 } from '../../worker/api/doors.js';
import type { Door, WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { anthropicErrors } from './errors.js';
import { postCountTokens, postMessages } from './messages.js';
import { anthropicList, anthropicModel } from './models.js';
import { offlineRoutes } from './offline.js';

const absent: ReadonlySet<string> = new Set(['complete', 'skills']);

function hasVersion(headers: IncomingHttpHeaders): boolean {
  return headers['anthropic-version'] !== undefined;
}

/**
 * API that clients of `/v1/messages` expect, and clients that name its version. OpenAI's API has GET /v1/models too, but
 * its SDKs send no `anthropic-version`; a gateway may add it to all requests.
 */
export const anthropicDoor: Door = {
  errorFormOf: ({ path, headers }) => {
    if (!path.startsWith('/v1/') && path !== '/v1') return null;
    return hasVersion(headers) || /^\/v1\/messages(\/|$)/.test(path) ? anthropicErrors : null;
  },
  findPath: (path, { headers }) => {
    const below = belowV1(path);
    const [first = ''] = below.split('/', 1);
    if (first === 'messages' || absent.has(first)) return `/v1/${below}`;
    return path === 'models' && hasVersion(headers) ? '/v1/models' : null; // the native API has /models, too
  },
  requestIdHeader: 'request-id',
  models: {
    knownQuery: new Set(['beta']), // the SDK marks its beta calls, which are the same here
    list: anthropicList,
    one: (model, context) => anthropicModel(model, context),
  },
  absent,
};

export function createPart({ guards, jobs }: WorkerCore): WorkerPart {
  const { mayAsk, needsService, namesUser, capped, once } = guards;
  const beforeJob = [mayAsk, needsService, namesUser, capped, once];
  return {
    routes: [
      { route: '/v1/messages', post: [...beforeJob, postMessages(jobs)] },
      { route: '/v1/messages/count_tokens', post: [mayAsk, namesUser, capped, postCountTokens(jobs)] },
    ],
    door: anthropicDoor,
    offlineRoutes,
  };
}
