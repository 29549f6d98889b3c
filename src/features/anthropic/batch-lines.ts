import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import { check, readJsonBytes } from '../../worker/http/body.js';
import type { BatchLines } from '../../worker/jobs/batch-lines.js';
import { fileForms } from './attachments.js';
import { anthropicErrorBody } from './errors.js';
import { messagesBody } from './foreign-messages.js';
import { messageBody } from './messages.js';
import { parseMessages } from './messages-request.js';

const customId = z
  .string('must be text')
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must have 1 to 64 letters, digits, hyphens and underscores');

export const batchRequest = z.strictObject({
  custom_id: customId,
  params: z.record(z.string(), z.unknown(), 'must be an object'),
});

/** Lines of the batches of Anthropic's API. */
export const messageBatchLines: BatchLines = {
  route: '/v1/messages',
  answerOf: () => messageBody,
  customIdIn: (id) => customId.safeParse(id).data ?? null,
  parse: async (bytes, fillFiles) => {
    const body = check((await readJsonBytes(bytes, batchRequest)).params, messagesBody);
    if (body.max_tokens === 0) throw invalid('max_tokens', 'must be at least 1 in a batch');
    await fillFiles(body, fileForms);
    return { parsed: parseMessages(body) };
  },
  answered: (id, { body }) => `{"custom_id":${JSON.stringify(id)},"result":{"type":"succeeded","message":${body}}}`,
  failed: (id, requestId, error) =>
    JSON.stringify({ custom_id: id, result: { type: 'errored', error: anthropicErrorBody(error, requestId) } }),
  ended: (id, cause) => JSON.stringify({ custom_id: id, result: { type: cause } }),
};
