import { z } from 'zod';
import { askedModel } from '../parts.js';
import { content } from './content.js';
import { jsonSchema, named, streamed } from './options.js';

/** A message, or another thing that a response was made of. Its type decides what it holds; a message may come without. */
const item = z.looseObject({
  type: named.nullish(),
  role: named.nullish(),
  content: content.nullish(),
  arguments: z.unknown().optional(),
  input: z.unknown().optional(),
  output: z.unknown().optional(),
});

const tool = z.looseObject({
  type: named,
  name: named.nullish(),
  description: named.nullish(),
  parameters: jsonSchema.nullish(),
});

const toolChoice = z.union(
  [z.enum(['none', 'auto', 'required']), z.looseObject({ type: z.literal('function'), name: z.string() })],
  'must be none, auto, required or one function',
);

const format = z.looseObject({ type: named, schema: jsonSchema.nullish() });

export const responsesRequest = z.looseObject({
  model: askedModel,
  input: z.union([z.string(), z.array(item)], 'must be text, or a list of items'),
  instructions: named.nullish(),
  stream: streamed,
  text: z.looseObject({ format: format.nullish() }).nullish(),
  reasoning: z.looseObject({ effort: named.nullish() }).nullish(),
  tools: z.array(tool, 'must be a list').nullish(),
  tool_choice: toolChoice.nullish(),
  background: z.boolean('must be true or false').nullish(),
  top_logprobs: z.number('must be a number').nullish(),
  user: named.nullish(),
});
export type ResponsesRequest = z.infer<typeof responsesRequest>;
export type InputItem = z.infer<typeof item>;
