import { z } from 'zod';
import { imageTypes } from './job.js';

/**
 * What was said, in pieces that fit into messages of the channel: each message begins with its role, then come its text
 * and its images. The system text, where there is one, comes first.
 */
export const transcriptPart = z.discriminatedUnion('type', [
  z.object({ type: z.literal('message'), role: z.enum(['system', 'user', 'assistant']) }).readonly(),
  z.object({ type: z.literal('text'), text: z.string() }).readonly(),
  /** `bytes`: of the image itself. */
  z.object({ type: z.literal('image'), mediaType: z.enum(imageTypes), bytes: z.int() }).readonly(),
  /** Base64, of the image before. */
  z.object({ type: z.literal('image-data'), data: z.string() }).readonly(),
]);
export type TranscriptPart = z.infer<typeof transcriptPart>;
