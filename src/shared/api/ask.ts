import { z } from 'zod';
import { model, modelText, streamFlag } from './text.js';

export const askRequest = z
  .strictObject({
    prompt: modelText.meta({ description: 'What the model is asked.', examples: ['Hello, my name is Ada'] }),
    system: modelText.optional().meta({ description: 'Instructions that stand before the prompt.' }),
    model: model.optional(),
    stream: streamFlag.optional(),
  })
  .meta({ id: 'AskRequest' });

/** Tokens and cost as the model CLI reports them, null where it reports nothing. */
export const usageBody = z
  .strictObject({
    input_tokens: z.int().nonnegative().nullable(),
    output_tokens: z.int().nonnegative().nullable(),
    cost_usd: z.number().nonnegative().optional(),
  })
  .meta({ id: 'Usage', description: 'As the model CLI reports it; null where it reports nothing.' });

export type UsageBody = z.infer<typeof usageBody>;

export const askResult = z
  .strictObject({
    success: z.literal(true),
    response: z.string(),
    model: z.string().nullable(),
    usage: usageBody.nullable(),
    queue_ms: z.int().nonnegative(),
    duration_ms: z.int().nonnegative(),
    request_id: z.string(),
  })
  .meta({ id: 'AskResult' });
export type AskResult = z.infer<typeof askResult>;
