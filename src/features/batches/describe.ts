import { z } from 'zod';
import { accessErrors, keptErrors } from '../../shared/api/endpoints.js';
import { batchBody, batchList, idQuery, pageLimit } from '../../shared/api/files.js';
import type { EndpointsOfApi, FeatureEndpoint } from '../../shared/features/feature.js';
import { messageBatchRequest } from './message-routes.js';
import { batchCreateRequest } from './openai-routes.js';

/** Batches in the description of the API. */

const readErrors = [...keptErrors, 'not_found'] as const;
/** Errors of endpoints that create a batch. Its jobs fail in its results. */
const batchErrors = [
  ...accessErrors,
  'payload_too_large',
  'shutting_down',
  'store_unavailable',
  'not_found',
  'concurrency_limited',
  'idempotency_in_progress',
  'idempotency_mismatch',
] as const;

const batchId = { batch_id: 'Id of the batch.' };

const openAiEndpoints: readonly FeatureEndpoint[] = [
  {
    ...{ method: 'GET', route: '/v1/batches', errors: readErrors, id: 'listBatches' },
    summary: 'List batches of OpenAI’s API',
    description: 'A client sees only its own batches.',
    query: { limit: pageLimit.optional(), after: idQuery.optional() },
    answer: batchList,
    answerText: 'A page of batches, the newest first.',
  },
  {
    ...{ method: 'POST', route: '/v1/batches', errors: batchErrors, id: 'createBatch' },
    summary: 'Create a batch from a file of requests',
    description: 'Each line of the file is a request to `endpoint`. The lines run in the background.',
    onceText: 'A repeated request with the same key creates no second batch.',
    body: {
      schema: batchCreateRequest,
      example: { input_file_id: 'file-…', endpoint: '/v1/chat/completions', completion_window: '24h' },
    },
    answer: batchBody,
    answerText: 'The batch.',
  },
  {
    ...{ method: 'GET', route: '/v1/batches/{batch_id}', errors: readErrors, id: 'getBatch' },
    summary: 'Get a batch of OpenAI’s API',
    description: 'The counts change while the lines are answered.',
    params: batchId,
    answer: batchBody,
    answerText: 'The batch, and the files with its results when it has ended.',
  },
  {
    ...{ method: 'POST', route: '/v1/batches/{batch_id}/cancel', errors: readErrors, id: 'cancelBatch' },
    summary: 'Cancel a batch of OpenAI’s API',
    description: 'Results that exist are kept. A batch that has ended is unchanged.',
    params: batchId,
    answer: batchBody,
    answerText: 'The batch.',
  },
];

const messageBatch = z.looseObject({
  id: z.string(),
  type: z.literal('message_batch'),
  processing_status: z.enum(['in_progress', 'canceling', 'ended']),
  request_counts: z.looseObject({
    processing: z.int(),
    succeeded: z.int(),
    errored: z.int(),
    canceled: z.int(),
    expired: z.int(),
  }),
  results_url: z.string().nullable(),
});
const batchPage = { limit: pageLimit.optional(), after_id: idQuery.optional(), before_id: idQuery.optional() };
const messageExample = { model: 'default', max_tokens: 1024, messages: [{ role: 'user', content: 'Hello' }] };
const messageEndpoints: readonly FeatureEndpoint[] = [
  {
    ...{ method: 'GET', route: '/v1/messages/batches', errors: [...keptErrors, 'not_found'] },
    id: 'listMessageBatches',
    summary: 'List batches of Anthropic’s API',
    description: 'A client sees only its own batches.',
    query: batchPage,
    answer: z.looseObject({ data: z.array(messageBatch), has_more: z.boolean() }),
    answerText: 'A page of batches, the newest first.',
  },
  {
    ...{ method: 'POST', route: '/v1/messages/batches', errors: batchErrors, id: 'createMessageBatch' },
    summary: 'Create a batch of messages',
    description: 'The requests run in the background. Results are at `results_url` when the batch has ended.',
    onceText: 'A repeated request with the same key creates no second batch.',
    body: { schema: messageBatchRequest, example: { requests: [{ custom_id: 'first', params: messageExample }] } },
    answer: messageBatch,
    answerText: 'The batch.',
  },
  {
    ...{ method: 'GET', route: '/v1/messages/batches/{batch_id}', errors: [...keptErrors, 'not_found'] },
    id: 'getMessageBatch',
    summary: 'Get a batch of Anthropic’s API',
    description: 'The counts change while the requests are answered.',
    params: batchId,
    answer: messageBatch,
    answerText: 'The batch.',
  },
  {
    ...{ method: 'DELETE', route: '/v1/messages/batches/{batch_id}', errors: [...keptErrors, 'not_found'] },
    id: 'deleteMessageBatch',
    summary: 'Delete a batch of Anthropic’s API that has ended',
    description: 'A batch that has not ended must be cancelled first.',
    params: batchId,
    answer: z.looseObject({ id: z.string(), type: z.literal('message_batch_deleted') }),
    answerText: 'The batch and its results are deleted.',
  },
  {
    ...{ method: 'GET', route: '/v1/messages/batches/{batch_id}/results', errors: [...keptErrors, 'not_found'] },
    id: 'getMessageBatchResults',
    summary: 'Download the results of a batch of Anthropic’s API',
    description: 'The batch must have ended. The results are in no particular order.',
    params: batchId,
    answer: 'application/x-jsonl',
    answerText: 'One JSON object for each request, each in one line.',
  },
  {
    ...{ method: 'POST', route: '/v1/messages/batches/{batch_id}/cancel', errors: [...keptErrors, 'not_found'] },
    id: 'cancelMessageBatch',
    summary: 'Cancel a batch of Anthropic’s API',
    description: 'Results that exist are kept. A batch that has ended is unchanged.',
    params: batchId,
    answer: messageBatch,
    answerText: 'The batch.',
  },
];

export const described: readonly EndpointsOfApi[] = [
  { formOf: '/v1/messages', endpoints: messageEndpoints },
  { formOf: '/v1/chat/completions', endpoints: openAiEndpoints },
];
