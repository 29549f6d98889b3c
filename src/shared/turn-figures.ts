import { z } from 'zod';
import { usage } from './job.js';

/** Data that a conversation stores with an answer: the model, its usage, and marks. */
export const turnFigures = z
  .object({
    model: z.string().nullable(),
    usage: usage.unwrap().pick({ inputTokens: true, outputTokens: true, costUsd: true }).readonly(),
    /** Present if the client has ended the answer early. */
    isInterrupted: z.literal(true).optional(),
  })
  .readonly();
export type TurnFigures = z.infer<typeof turnFigures>;
