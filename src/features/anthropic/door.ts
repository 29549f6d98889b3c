import { z } from 'zod';
import { batchErrors, jobErrors, keptErrors, readingErrors } from '../../shared/api/endpoints.js';
import { idQuery, pageLimit } from '../../shared/api/files.js';
import type { DoorDescription, FeatureEndpoint } from '../../shared/features/feature.js';
import { messageBatchRequest } from './batches.js';
import { messagesRequest } from './messages-request.js';
import { modelSchema, modelsSchema } from './models.js';

/** Anthropic's API in the description of the API. */

const batch = z.looseObject({
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
const batchId = { batch_id: 'Id of the batch.' };
const batchPage = { limit: pageLimit.optional(), after_id: idQuery.optional(), before_id: idQuery.optional() };
const messageExample = { model: 'default', max_tokens: 1024, messages: [{ role: 'user', content: 'Hello' }] };
const body = {
  schema: messagesRequest,
  example: { ...messageExample, messages: [{ role: 'user', content: 'Hello, my name is Ada' }] },
};

const messageEndpoints: readonly FeatureEndpoint[] = [
  {
    ...{ method: 'POST', route: '/v1/messages', errors: [...jobErrors, 'not_found'], id: 'createMessage' },
    otherErrors: { 529: 'The model is overloaded.' },
    summary: 'Messages in the form of the Anthropic API',
    description:
      'The client sends the whole conversation each time. The header `X-Ignored-Parameters` names the fields that have no effect.',
    body,
    runsModel: true,
    answer: z.looseObject({ type: z.literal('message'), content: z.array(z.looseObject({ type: z.string() })) }),
    answerText: 'The answer. Streamed, the events from `message_start` to `message_stop`.',
  },
  {
    ...{ method: 'POST', route: '/v1/messages/count_tokens', errors: [...readingErrors, 'not_found'] },
    id: 'countTokens',
    summary: 'The number of input tokens of a message',
    description:
      'The o200k tokenizer estimates the tokens of the system text, the messages, and the schema of the answer. An image counts as 1,600 tokens.',
    body,
    answer: z.looseObject({ input_tokens: z.int().nonnegative() }),
    answerText: 'The count.',
  },
];

const batchEndpoints: readonly FeatureEndpoint[] = [
  {
    ...{ method: 'GET', route: '/v1/messages/batches', errors: [...keptErrors, 'not_found'] },
    id: 'listMessageBatches',
    summary: 'List batches of Anthropic’s API',
    description: 'A client sees only its own batches.',
    query: batchPage,
    answer: z.looseObject({ data: z.array(batch), has_more: z.boolean() }),
    answerText: 'A page of batches, the newest first.',
  },
  {
    ...{ method: 'POST', route: '/v1/messages/batches', errors: batchErrors, id: 'createMessageBatch' },
    summary: 'Create a batch of messages',
    description: 'The requests run in the background. Results are at `results_url` when the batch has ended.',
    onceText: 'A repeated request with the same key creates no second batch.',
    body: { schema: messageBatchRequest, example: { requests: [{ custom_id: 'first', params: messageExample }] } },
    answer: batch,
    answerText: 'The batch.',
  },
  {
    ...{ method: 'GET', route: '/v1/messages/batches/{batch_id}', errors: [...keptErrors, 'not_found'] },
    id: 'getMessageBatch',
    summary: 'Get a batch of Anthropic’s API',
    description: 'The counts change while the requests are answered.',
    params: batchId,
    answer: batch,
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
    answer: batch,
    answerText: 'The batch.',
  },
];

export const door: DoorDescription = {
  section: 'For SDKs',
  error: z
    .object({
      type: z.literal('error'),
      error: z.object({ type: z.string(), message: z.string() }),
      request_id: z.string(),
    })
    .meta({ id: 'AnthropicError', description: 'An error in the form of the Anthropic API.' }),
  stream: {
    mediaType: 'text/event-stream',
    schema: z.string().meta({
      description:
        'Server-sent events in the form of that API. Comments contain places in the queue, and keep the connection open through proxies.',
    }),
  },
  shared: { model: modelSchema, models: modelsSchema },
  endpoints: [...messageEndpoints, ...batchEndpoints],
};
