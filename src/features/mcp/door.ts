import { z } from 'zod';
import { accessErrors } from '../../shared/api/endpoints.js';
import { errorBody } from '../../shared/api/error.js';
import type { DoorDescription } from '../../shared/features/feature.js';
import { message } from './messages.js';

/** The server of the Model Context Protocol in the description of the API. */

const rpcError = z
  .object({
    jsonrpc: z.literal('2.0'),
    id: z.union([z.string(), z.int()]).nullable(),
    error: z.object({
      code: z.int(),
      message: z.string(),
      data: z
        .union([
          errorBody.pick({ error: true, request_id: true, reason: true, retry_after_seconds: true }),
          z.object({ supported: z.array(z.string()), requested: z.string() }),
        ])
        .optional()
        .meta({
          description:
            'For a refusal: the error code of the other endpoints. For an unknown version: the supported versions.',
        }),
    }),
  })
  .meta({ id: 'RpcError', description: 'An error in the form of JSON-RPC.' });

export const door: DoorDescription = {
  section: 'For SDKs',
  error: rpcError,
  stream: {
    mediaType: 'text/event-stream',
    schema: z.string().meta({ description: 'Server-sent events, each `data` one JSON-RPC message.' }),
  },
  endpoints: [
    {
      method: 'POST',
      route: '/mcp',
      // Failures of jobs are missing, because the protocol reports them as results of tools.
      errors: [
        ...accessErrors,
        'idempotency_in_progress',
        'payload_too_large',
        'idempotency_mismatch',
        'concurrency_limited',
        'shutting_down',
        'store_unavailable',
        'not_found',
      ],
      others: { 202: 'A notification, which has no answer.' },
      id: 'sendMcpMessage',
      summary: 'The server of the Model Context Protocol',
      description:
        'Streamable HTTP without sessions: one JSON-RPC message in each request. The tool `ask` asks a model, `models` lists the models, `job` returns the state of a background job. A failed job is a result with `isError`.',
      body: { schema: message, example: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
      runsModel: true,
      answer: z.union([
        z.looseObject({ jsonrpc: z.literal('2.0'), id: z.union([z.string(), z.int()]), result: z.looseObject({}) }),
        rpcError,
      ]),
      answerText:
        'The result. A call of `ask` with a `progressToken` that accepts `text/event-stream` gets events with `notifications/progress`, then the result.',
    },
  ],
};
