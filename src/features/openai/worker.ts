import { belowV1 } from '../../worker/api/doors.js';
import type { Door, FeatureRoute, WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { postChatCompletions } from './chat.js';
import { postCompletions } from './completions.js';
import { openAiErrors } from './errors.js';
import { openAiModel, openAiModels } from './models.js';
import { offlineRoutes } from './offline.js';
import {
  cancelResponse,
  deleteResponse,
  getResponse,
  getResponseInput,
  postResponses,
  refuseUnsupportedCall,
  refuseWebSocket,
} from './responses.js';

/** Paths of OpenAI's API that this service does not support. No native path begins with one. */
const absent: ReadonlySet<string> = new Set(
  (
    'assistants audio containers conversations edits embeddings engines evals ' +
    'fine_tuning images moderations organization realtime rerank threads uploads vector_stores videos'
  ).split(' '),
);

/** Matches the paths of this API. `GET /chat/{conversation_id}` has no conflict, because no id is `completions`. */
const ownPaths = /^(?:batches|chat\/completions|completions|responses)(?:\/|$)/;

/** API that answers all requests below /v1 that no other API accepts: its clients send no header that names it. */
export const openAiDoor: Door = {
  errorFormOf: ({ path }) => (path === '/v1' || path.startsWith('/v1/') ? openAiErrors : null),
  findPath: (path) => {
    const below = belowV1(path);
    const [first = ''] = below.split('/', 1);
    return ownPaths.test(below) || absent.has(first) ? `/v1/${below}` : null;
  },
  models: { list: openAiModels, one: openAiModel, nativeFields: openAiModels },
  resources: new Set(['batches', 'chat', 'completions', 'responses', ...absent]),
  absent,
};

export function createPart({ guards, jobs, closing }: WorkerCore): WorkerPart {
  const { mayAsk, needsService, namesUser, capped, once } = guards;
  const { primary } = jobs;
  const mayCall = [guards.mayCall, namesUser];
  const beforeJob = [mayAsk, needsService, namesUser, capped, once];
  const responses: readonly FeatureRoute[] = [
    { route: '/v1/responses', before: [refuseWebSocket], post: [...beforeJob, postResponses({ ...jobs, closing })] },
    {
      route: '/v1/responses/{response_id}',
      before: [refuseUnsupportedCall],
      get: [...mayCall, getResponse({ ...jobs, closing })],
      delete: [...mayCall, deleteResponse(primary)],
    },
    { route: '/v1/responses/{response_id}/input_items', get: [...mayCall, getResponseInput(jobs)] },
    { route: '/v1/responses/{response_id}/cancel', post: [...mayCall, cancelResponse(primary)] },
  ];
  return {
    routes: [
      { route: '/v1/chat/completions', post: [...beforeJob, postChatCompletions(jobs)] },
      { route: '/v1/completions', post: [...beforeJob, postCompletions(jobs)] },
      ...responses,
    ],
    door: openAiDoor,
    offlineRoutes,
  };
}
