import { z } from 'zod';
import {
  idQuery,
  orderQuery,
  pageLimit,
  fileBody as plainFileBody,
  uploadPurposeQuery,
} from '../src/shared/api/files.js';
import type { Operation } from './openapi-document.js';

const security = [{ apiKey: [] }, { bearer: [] }, {}];

const id = (name: string, description: string) => ({ path: z.object({ [name]: z.string().meta({ description }) }) });
const fileId = id('file_id', 'Id of the file.');
const fileBody = plainFileBody.meta({
  description: 'A file in the form of OpenAI’s API, or with `anthropic-version` in the form of Anthropic’s.',
});

const filePage = z.object({
  limit: pageLimit.optional(),
  after: idQuery.optional(),
  order: orderQuery.optional(),
  purpose: uploadPurposeQuery.optional(),
  page: idQuery.optional().meta({ description: 'With `anthropic-version`: `next_page` of the page before.' }),
});

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

/** Descriptions of the operations for files. */
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
} satisfies Readonly<Record<string, Operation>>;
