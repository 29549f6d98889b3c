import { z } from 'zod';
import { accessErrors, keptErrors } from '../../shared/api/endpoints.js';
import {
  idQuery,
  orderQuery,
  pageLimit,
  fileBody as plainFileBody,
  uploadPurposeQuery,
} from '../../shared/api/files.js';
import type { EndpointsOfApi } from '../../shared/features/feature.js';

/** Files in the description of the API. */

const fileBody = plainFileBody.meta({
  description: 'A file in the form of OpenAI’s API, or with `anthropic-version` in the form of Anthropic’s.',
});

const filePage = {
  limit: pageLimit.optional(),
  after: idQuery.optional(),
  order: orderQuery.optional(),
  purpose: uploadPurposeQuery.optional(),
  page: idQuery.optional().meta({ description: 'With `anthropic-version`: `next_page` of the page before.' }),
};

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

const errors = [...keptErrors, 'not_found'] as const;
const params = { file_id: 'Id of the file.' };

export const described: readonly EndpointsOfApi[] = [
  {
    formOf: null,
    endpoints: [
      {
        ...{ method: 'GET', route: '/v1/files', errors, id: 'listFiles' },
        summary: 'List files',
        description: 'The newest file comes first. A client sees only its own files.',
        query: filePage,
        answer: files,
        answerText: 'A page of files.',
      },
      {
        ...{ method: 'POST', route: '/v1/files', id: 'uploadFile' },
        errors: [...accessErrors, 'payload_too_large', 'shutting_down', 'store_unavailable', 'not_found'],
        summary: 'Upload a file',
        description: 'With `MODEL_API_FILES=off`, the response is 404. Without a durable store, the file is in memory.',
        form,
        answer: fileBody,
        answerText: 'The file.',
      },
      {
        ...{ method: 'GET', route: '/v1/files/{file_id}', errors, id: 'getFile' },
        summary: 'Get a file without its content',
        description: 'A file of another client is 404, as if it did not exist.',
        params,
        answer: fileBody,
        answerText: 'The file.',
      },
      {
        ...{ method: 'DELETE', route: '/v1/files/{file_id}', errors, id: 'deleteFile' },
        summary: 'Delete a file',
        description: 'A file that an unfinished batch uses cannot be deleted.',
        params,
        answer: z.looseObject({ id: z.string() }),
        answerText: 'The file is deleted.',
      },
      {
        ...{ method: 'GET', route: '/v1/files/{file_id}/content', errors, id: 'getFileContent' },
        summary: 'Download a file',
        description: 'The content is unchanged. It is sent as a download, so that no browser shows it as a page.',
        params,
        answer: 'application/octet-stream',
        answerText: 'The bytes of the file.',
      },
    ],
  },
];
