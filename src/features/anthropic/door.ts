import { z } from 'zod';
import { jobErrors, readingErrors } from '../../shared/api/endpoints.js';
import type { DoorDescription, FeatureEndpoint } from '../../shared/features/feature.js';
import { messagesRequest } from './messages-request.js';
import { modelSchema, modelsSchema } from './models.js';

/** Anthropic's API in the description of the API. */

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
  endpoints: messageEndpoints,
};
