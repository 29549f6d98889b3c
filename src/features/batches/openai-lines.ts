import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import { readJsonBytes } from '../../worker/http/body.js';
import type { LineForm } from './line-form.js';
import type { EndCause } from './views.js';

const maxIdLength = 512;

const customId = z
  .string('must be text')
  .min(1, 'must not be empty')
  .max(maxIdLength, `must have at most ${maxIdLength} characters`);

const requestLine = z.looseObject({
  custom_id: customId,
  method: z.literal('POST', 'must be POST'),
  url: z.string('must be text'),
  body: z.record(z.string(), z.unknown(), 'must be an object'),
});

const ended: Readonly<Record<EndCause, { readonly code: string; readonly message: string }>> = {
  canceled: { code: 'batch_cancelled', message: 'This request was not executed, because the batch was cancelled.' },
  expired: {
    code: 'batch_expired',
    message: 'This request could not be executed before the completion window expired.',
  },
};

/** Lines of OpenAI's batches. */
export const openAiLines: LineForm = {
  customIdIn: (id) => customId.safeParse(id).data ?? null,
  bodyIn: async (bytes, route) => {
    const { url, body } = await readJsonBytes(bytes, requestLine);
    if (url !== route) throw invalid('url', `must be ${route}, the endpoint of the batch`);
    return body;
  },
  answered: (id, { requestId, body, ignored }) => {
    const more = ignored.length === 0 ? '' : `,"ignored_parameters":${JSON.stringify(ignored)}`;
    const response = `{"status_code":200,"request_id":${JSON.stringify(requestId)},"body":${body}${more}}`;
    return lineText(id, response, 'null');
  },
  noApi: ({ message }) => ({
    status: 404,
    body: { error: { message, type: 'invalid_request_error', code: 'not_found', param: null } },
  }),
  failed: (id, requestId, error, errorForm) => {
    const { status, body } = errorForm(error, requestId);
    return lineText(id, JSON.stringify({ status_code: status, request_id: requestId, body }), 'null');
  },
  ended: (id, cause) => lineText(id, 'null', JSON.stringify(ended[cause])),
};

function lineText(id: string | null, response: string, error: string): string {
  const custom = JSON.stringify(id);
  return `{"id":"batch_req_${randomUUID()}","custom_id":${custom},"response":${response},"error":${error}}`;
}
