import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { ParsedRequest } from '../../worker/jobs/job-request.js';
import { messageOf } from '../../worker/jobs/message-parts.js';
import { joined, lastOfUser, plainText } from '../doors/messages.js';
import { fieldsOf } from '../doors/request-fields.js';
import { sdkRequest } from '../doors/sdk-request.js';
import { commonFields, images, imagesIn, wishesIn } from './request.js';

export const ollamaGenerateRequest = z.looseObject({
  ...commonFields,
  prompt: plainText.nullish(),
  system: plainText.nullish(),
  images: images.nullish(),
  suffix: plainText.nullish(),
});
export type OllamaGenerateRequest = z.infer<typeof ollamaGenerateRequest>;

/**
 * Fields that the service supports. `template`, `raw` and `context` are ignored, because only a program that runs the
 * model itself can use them.
 */
const known = fieldsOf(ollamaGenerateRequest, 'keep_alive');

/** Returns null for a request that only loads the model. Throws `validation_error` for unsupported requests. */
export function parseOllamaGenerate(body: OllamaGenerateRequest): ParsedRequest | null {
  const { prompt, suffix, system } = body;
  const shown = body.images ?? [];
  if ((prompt ?? '') === '' && shown.length === 0) return null;
  if ((suffix ?? '') !== '')
    throw invalid('suffix', 'must not be sent: no model of this service fills in the middle of a text');
  const { job, ...wishes } = wishesIn(body);
  const message = messageOf('user', [...imagesIn(shown, 'images'), { type: 'text', text: prompt ?? '' }]);
  return sdkRequest({
    body,
    known,
    conversation: { system: joined([system ?? '']), ...lastOfUser([message], 'prompt') },
    tools: { offer: undefined, forms: {}, dropped: [] },
    job,
    ...wishes,
    imageField: shown.length > 0 ? 'images.0' : null,
    documentField: null,
  });
}
