import { z } from 'zod';
import { readJsonBytes } from '../../worker/http/body.js';
import type { LineForm } from './line-form.js';

const customId = z
  .string('must be text')
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must have 1 to 64 letters, digits, hyphens and underscores');

export const batchRequest = z.strictObject({
  custom_id: customId,
  params: z.record(z.string(), z.unknown(), 'must be an object'),
});

/** Lines of the batches of Anthropic's API. */
export const messageLines: LineForm = {
  customIdIn: (id) => customId.safeParse(id).data ?? null,
  bodyIn: async (bytes) => (await readJsonBytes(bytes, batchRequest)).params,
  answered: (id, { body }) => `{"custom_id":${JSON.stringify(id)},"result":{"type":"succeeded","message":${body}}}`,
  noApi: ({ message }, request_id) => ({
    status: 404,
    body: { type: 'error', error: { type: 'not_found_error', message }, request_id },
  }),
  failed: (id, requestId, error, errorForm) => {
    const { body } = errorForm(error, requestId);
    return JSON.stringify({ custom_id: id, result: { type: 'errored', error: body } });
  },
  ended: (id, cause) => JSON.stringify({ custom_id: id, result: { type: cause } }),
};
