import { z } from 'zod';
import { addedMessage, usage } from './job.js';

/** Bytes of all messages that are added to one answer: nothing else limits them, and they are sent in one piece. */
export const maxAddedBytes = 256 * 1024;

/** Data that a conversation stores with an answer: the model, its usage, and marks. */
export const turnFigures = z
  .object({
    model: z.string().nullable(),
    usage: usage.unwrap().pick({ inputTokens: true, outputTokens: true, costUsd: true }).readonly(),
    /** Mark that the client has ended the answer early. */
    isInterrupted: z.literal(true).optional(),
    additions: z.array(addedMessage).readonly().optional(),
  })
  .readonly();
export type TurnFigures = z.infer<typeof turnFigures>;
