import { z } from 'zod';
import { requestImages } from './images.js';
import { answerSchema, effort } from './structured.js';
import { model, modelText, streamFlag } from './text.js';

export const askRequest = z
  .strictObject({
    prompt: modelText.meta({ description: 'What the model is asked.', examples: ['Hello, my name is Ada'] }),
    system: modelText.optional().meta({ description: 'Instructions that stand before the prompt.' }),
    model: model.optional(),
    schema: answerSchema.optional(),
    images: requestImages.optional(),
    effort: effort.optional(),
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

export const structuredValue = z
  .record(z.string(), z.unknown())
  .meta({ description: 'With `schema`: the value that the answer is, checked against it.' });

export const askResult = z
  .strictObject({
    success: z.literal(true),
    response: z.string(),
    structured: structuredValue.optional(),
    model: z.string().nullable(),
    usage: usageBody.nullable(),
    queue_ms: z.int().nonnegative(),
    duration_ms: z.int().nonnegative(),
    request_id: z.string(),
  })
  .meta({ id: 'AskResult' });
export type AskResult = z.infer<typeof askResult>;
