import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import { fieldsOf, ignoredFields, type ParsedRequest, sdkJob } from '../jobs/job-request.js';
import { joined, lastOfUser, messageOf, plainText } from '../jobs/message-parts.js';
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
  const { job, ignored, ...wishes } = wishesIn(body);
  const message = messageOf('user', [...imagesIn(shown, 'images'), { type: 'text', text: prompt ?? '' }]);
  const { question, history } = lastOfUser([message], 'prompt');
  const { text, images: parts } = question;
  return {
    job: sdkJob({ text, images: parts, history, system: joined([system ?? '']), ...job }),
    ...wishes,
    forms: {},
    droppedTools: [],
    ignored: [...ignoredFields(body, known), ...ignored],
    imageField: shown.length > 0 ? 'images.0' : null,
  };
}
