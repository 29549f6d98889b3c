import { z } from 'zod';
import {
  batchBody,
  batchList,
  fileBody,
  idQuery,
  orderQuery,
  pageLimit,
  uploadPurposeQuery,
} from '../src/shared/api/files.js';
import { batchCreateRequest } from '../src/worker/openai/batches.js';
import type { Operation } from './openapi-document.js';

const security = [{ apiKey: [] }, { bearer: [] }, {}];

const id = (name: string, description: string) => ({ path: z.object({ [name]: z.string().meta({ description }) }) });
const fileId = id('file_id', 'Id of the file.');
const batchId = id('batch_id', 'Id of the batch.');

const limit = pageLimit.optional();
const filePage = z.object({
  limit,
  after: idQuery.optional(),
  order: orderQuery.optional(),
  purpose: uploadPurposeQuery.optional(),
  page: idQuery.optional().meta({ description: 'With `anthropic-version`: `next_page` of the page before.' }),
});
const openAiPage = z.object({ limit, after: idQuery.optional() });

const files = z.looseObject({ data: z.array(fileBody), has_more: z.boolean(), next_page: z.string().nullish() });
const form = z.object({
  file: z.string().meta({ format: 'binary', description: 'The file.' }),
  purpose: z.enum(['batch', 'user_data']).optional().meta({
    description: 'Required, except with `anthropic-version`: then it is `user_data` by default.',
  }),
  'expires_after[anchor]': z.literal('created_at').optional(),
  'expires_after[seconds]': z
    .string()
    .optional()
    .meta({ description: 'Time until the file expires, 3600 to 2592000.' }),
  expires_in_seconds: z.string().optional().meta({ description: 'The same time, as in Anthropic’s API.' }),
});

const idempotencyKey = z
  .string()
  .meta({ description: 'A repeated request with the same key creates no second batch.' });
const once = { header: z.object({ 'Idempotency-Key': idempotencyKey.optional() }) };

/** Descriptions of the operations for files and batches. */
export const fileOperations = {
  'GET /v1/files': {
    id: 'listFiles',
    summary: 'List files',
    description: 'The newest file comes first. A client sees only its own files.',
    requestParams: { query: filePage },
    security,
    ok: files,
    okText: 'A page of files.',
  },
  'POST /v1/files': {
    id: 'uploadFile',
    isStreamed: false,
    summary: 'Upload a file',
    description: 'Needs a durable store, or `MODEL_API_FILES=memory`; otherwise the response is 404.',
    requestBody: { required: true, content: { 'multipart/form-data': { schema: form } } },
    security,
    ok: fileBody,
    okText: 'The file.',
  },
  'GET /v1/files/{file_id}': {
    id: 'getFile',
    summary: 'Get a file without its content',
    description: 'A file of another client is 404, as if it did not exist.',
    requestParams: fileId,
    security,
    ok: fileBody,
    okText: 'The file.',
  },
  'DELETE /v1/files/{file_id}': {
    id: 'deleteFile',
    summary: 'Delete a file',
    description: 'A file that an unfinished batch uses cannot be deleted.',
    requestParams: fileId,
    security,
    ok: z.looseObject({ id: z.string() }),
    okText: 'The file is deleted.',
  },
  'GET /v1/files/{file_id}/content': {
    id: 'getFileContent',
    summary: 'Download a file',
    description: 'The content is unchanged. It is sent as a download, so that no browser shows it as a page.',
    requestParams: fileId,
    security,
    ok: 'application/octet-stream',
    okText: 'The bytes of the file.',
  },
  'GET /v1/batches': {
    id: 'listBatches',
    summary: 'List batches of OpenAI’s API',
    description: 'A client sees only its own batches.',
    requestParams: { query: openAiPage },
    security,
    ok: batchList,
    okText: 'A page of batches, the newest first.',
  },
  'POST /v1/batches': {
    id: 'createBatch',
    isStreamed: false,
    summary: 'Create a batch from a file of requests',
    description: 'Each line of the file is a request to `endpoint`. The lines run in the background.',
    requestParams: once,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: batchCreateRequest,
          example: { input_file_id: 'file-…', endpoint: '/v1/chat/completions', completion_window: '24h' },
        },
      },
    },
    security,
    ok: batchBody,
    okText: 'The batch.',
  },
  'GET /v1/batches/{batch_id}': {
    id: 'getBatch',
    summary: 'Get a batch of OpenAI’s API',
    description: 'The counts change while the lines are answered.',
    requestParams: batchId,
    security,
    ok: batchBody,
    okText: 'The batch, and the files with its results when it has ended.',
  },
  'POST /v1/batches/{batch_id}/cancel': {
    id: 'cancelBatch',
    isStreamed: false,
    summary: 'Cancel a batch of OpenAI’s API',
    description: 'Results that exist are kept. A batch that has ended is unchanged.',
    requestParams: batchId,
    security,
    ok: batchBody,
    okText: 'The batch.',
  },
} satisfies Readonly<Record<string, Operation>>;
