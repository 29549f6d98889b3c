import { z } from 'zod';
import { model, modelText } from './text.js';

export const askRequest = z.strictObject({
  prompt: modelText,
  system: modelText.optional(),
  model: model.optional(),
});

/** Tokens and cost as the model CLI reports them, null where it reports nothing. */
export const usageBody = z.strictObject({
  input_tokens: z.int().nonnegative().nullable(),
  output_tokens: z.int().nonnegative().nullable(),
  cost_usd: z.number().nonnegative().optional(),
});

export type UsageBody = z.infer<typeof usageBody>;

export const askResult = z.strictObject({
  success: z.literal(true),
  response: z.string(),
  model: z.string().nullable(),
  usage: usageBody.nullable(),
  queue_ms: z.int().nonnegative(),
  duration_ms: z.int().nonnegative(),
  request_id: z.string(),
});
export type AskResult = z.infer<typeof askResult>;
