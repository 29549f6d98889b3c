import type { FeatureRoute, WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { calls as fileCalls } from '../files/shared.js';
import { lineHandlers } from './lines.js';
import {
  cancelMessageBatch,
  deleteMessageBatch,
  getMessageBatch,
  getMessageBatches,
  getMessageBatchResults,
  postMessageBatch,
} from './message-routes.js';
import { cancelBatch, getBatch, getBatches, postBatch } from './openai-routes.js';
import type { calls } from './shared.js';

export function createPart(core: WorkerCore<typeof calls & typeof fileCalls>): WorkerPart {
  const { primary, guards, jobs, onFault: onDefect } = core;
  const { mayAsk, needsService, namesUser, capped, once } = guards;
  const mayCall = [guards.mayCall, namesUser];
  const beforeJob = [mayAsk, needsService, namesUser, capped, once];
  const { bodies } = jobs;
  const routes: readonly FeatureRoute[] = [
    {
      route: '/v1/messages/batches',
      get: [...mayCall, getMessageBatches(primary)],
      post: [...beforeJob, postMessageBatch(primary, jobs)],
    },
    {
      route: '/v1/messages/batches/{batch_id}',
      get: [...mayCall, getMessageBatch(primary)],
      delete: [...mayCall, deleteMessageBatch(primary)],
    },
    { route: '/v1/messages/batches/{batch_id}/results', get: [...mayCall, getMessageBatchResults(primary)] },
    { route: '/v1/messages/batches/{batch_id}/cancel', post: [...mayCall, cancelMessageBatch(primary)] },
    { route: '/v1/batches', get: [...mayCall, getBatches(primary)], post: [...beforeJob, postBatch(primary, jobs)] },
    { route: '/v1/batches/{batch_id}', get: [...mayCall, getBatch(primary)] },
    { route: '/v1/batches/{batch_id}/cancel', post: [...mayCall, cancelBatch(primary)] },
  ];
  const handlers = lineHandlers({ ...jobs, fileCalls: primary, limitBytes: bodies.limitBytes, onDefect });
  return { routes, handlers };
}
