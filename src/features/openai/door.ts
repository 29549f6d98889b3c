import { z } from 'zod';
import { limitQuery } from '../../shared/api/conversations.js';
import { jobErrors, keptErrors } from '../../shared/api/endpoints.js';
import type { DoorDescription, FeatureEndpoint } from '../../shared/features/feature.js';
import { chatCompletionRequest } from './chat-request.js';
import { completionRequest } from './completions.js';
import { modelSchema, modelsSchema } from './models.js';
import { startingAfterQuery, streamQuery } from './responses-background.js';
import { responsesRequest } from './responses-input.js';

/** OpenAI's API in the description of the API. */

const runErrors = [...jobErrors, 'not_found'] as const;
const readErrors = [...keptErrors, 'not_found'] as const;
const chunksText = 'The answer. Streamed, chunks without event names and `[DONE]` at the end.';

const completionEndpoints: readonly FeatureEndpoint[] = [
  {
    ...{ method: 'POST', route: '/v1/chat/completions', errors: runErrors, id: 'createChatCompletion' },
    summary: 'Chat completions in the form of the OpenAI API',
    description:
      'The client sends the whole conversation each time. The header `X-Ignored-Parameters` names the fields that have no effect.',
    body: {
      schema: chatCompletionRequest,
      example: { model: 'default', messages: [{ role: 'user', content: 'Hello, my name is Ada' }] },
    },
    runsModel: true,
    answer: z.looseObject({ object: z.literal('chat.completion'), choices: z.array(z.looseObject({})) }),
    answerText: chunksText,
  },
  {
    ...{ method: 'POST', route: '/v1/completions', errors: runErrors, id: 'createCompletion' },
    summary: 'Completions of a prompt in the older form of the OpenAI API',
    description:
      'The prompt becomes the only message of a chat completion. The header `X-Ignored-Parameters` names the fields that have no effect.',
    body: { schema: completionRequest, example: { model: 'default', prompt: 'Hello, my name is Ada' } },
    runsModel: true,
    answer: z.looseObject({
      object: z.literal('text_completion'),
      choices: z.array(z.looseObject({ text: z.string() })),
    }),
    answerText: chunksText,
  },
];

const keptResponse = z.looseObject({ object: z.literal('response'), status: z.string() });
const responseId = { response_id: '`resp_` and the id of the job.' };

const responseEndpoints: readonly FeatureEndpoint[] = [
  {
    ...{ method: 'POST', route: '/v1/responses', errors: runErrors, id: 'createResponse' },
    summary: 'Responses in the form of the OpenAI API',
    description:
      '`previous_response_id` continues a stored response; otherwise send the whole conversation as `input`. With `background`, the response is a 202 at once; GET the result later. With `background` and `stream`, it is the stream of events, and a disconnect does not cancel the job.',
    body: { schema: responsesRequest, example: { model: 'default', input: 'Hello, my name is Ada' } },
    runsModel: true,
    runsInBackground: true,
    answer: z.looseObject({ object: z.literal('response'), output: z.array(z.looseObject({ type: z.string() })) }),
    answerText: 'The answer. Streamed, the events from `response.created` to `response.completed`.',
  },
  {
    ...{ method: 'GET', route: '/v1/responses/{response_id}', errors: readErrors, id: 'getResponse' },
    summary: 'Get a response that was started with `background`',
    description: 'Its status is `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`.',
    params: responseId,
    query: { stream: streamQuery.optional(), starting_after: startingAfterQuery.optional() },
    isStreamed: true,
    answer: keptResponse,
    answerText: 'The response, with its answer if it has one yet. Streamed, the events from `response.created` on.',
  },
  {
    ...{ method: 'DELETE', route: '/v1/responses/{response_id}', errors: readErrors, id: 'deleteResponse' },
    summary: 'Delete a response',
    description: 'A waiting or running response is cancelled first.',
    params: responseId,
    answer: z.looseObject({ id: z.string(), deleted: z.literal(true) }),
    answerText: 'It is deleted.',
  },
  {
    ...{ method: 'GET', route: '/v1/responses/{response_id}/input_items', errors: readErrors },
    id: 'listInputItems',
    summary: 'List the input items of a response',
    description:
      'The input of a stored response and of the responses before it, without instructions. 400 if they have more than 2 MB. The input of a response with `background` is not stored.',
    params: responseId,
    query: {
      limit: limitQuery.optional().meta({ description: 'Maximum number: 1 to 100. Default: 20.' }),
      order: z.enum(['asc', 'desc']).optional().meta({ description: 'Default: `desc`, the last item first.' }),
      after: z.string().optional().meta({ description: 'The id of the last item of the previous page.' }),
    },
    answer: z.looseObject({
      object: z.literal('list'),
      data: z.array(z.looseObject({ id: z.string() })),
      has_more: z.boolean(),
    }),
    answerText: 'A page.',
  },
  {
    ...{ method: 'POST', route: '/v1/responses/{response_id}/cancel', errors: readErrors, id: 'cancelResponse' },
    summary: 'Cancel a response',
    description: 'A response that has ended does not change.',
    params: responseId,
    answer: keptResponse,
    answerText: 'The response.',
  },
];

export const door: DoorDescription = {
  section: 'For SDKs',
  error: z
    .object({
      error: z.object({
        message: z.string(),
        type: z.string(),
        code: z.string().nullable(),
        param: z.string().nullable(),
      }),
    })
    .meta({ id: 'OpenAiError', description: 'An error in the form of the OpenAI API.' }),
  stream: {
    mediaType: 'text/event-stream',
    schema: z.string().meta({
      description:
        'Server-sent events in the form of that API. Comments contain places in the queue, and keep the connection open through proxies.',
    }),
  },
  shared: {
    model: modelSchema,
    models: modelsSchema,
    nativeModels: {
      object: z.literal('list'),
      data: z.array(modelSchema).meta({ description: 'The same information in the form of `GET /v1/models`.' }),
    },
  },
  endpoints: [...completionEndpoints, ...responseEndpoints],
};
