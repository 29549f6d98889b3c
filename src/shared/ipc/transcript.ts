import { z } from 'zod';
import { imageTypes } from '../job.js';

/**
 * What was said, in pieces: each message begins with its role, then come its text
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

/** Where a reader is: in the system text (-1) or a message, there in the text (-1) or an image, after so many bytes of it. */
const transcriptPlace = z
  .object({
    message: z.int(),
    image: z.int(),
    at: z.int(),
    /** The messages there were when the reader began. */
    messageCount: z.int(),
  })
  .readonly();
export type TranscriptPlace = z.infer<typeof transcriptPlace>;

/** How a conversation is read: by so much as fits into one message of the channel, from a place to the next. */
export const transcriptOrder = z.object({
  id: z.string(),
  client: z.string(),
  withImages: z.boolean(),
  /** null: from its begin. */
  from: transcriptPlace.nullable(),
});
export const transcriptItem = z.object({
  parts: z.array(transcriptPart).readonly(),
  /** null at the end. */
  next: transcriptPlace.nullable(),
});
export type TranscriptOrder = z.infer<typeof transcriptOrder>;
export type TranscriptItem = z.infer<typeof transcriptItem>;
