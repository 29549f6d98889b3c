import { z } from 'zod';
import { askedModel, stopSequences } from '../jobs/message-parts.js';

/** A piece of content. What its type is decides what else it holds. */
const block = z.looseObject({ type: z.string('must be a string') });
export type Block = z.infer<typeof block>;

export const blockContent = z.union([z.string(), z.array(block)], 'must be text, or a list of blocks with a type each');
export type BlockContent = z.infer<typeof blockContent>;

const said = z.looseObject({ role: z.string('must be a string'), content: blockContent });

const jsonSchema = z.record(z.string(), z.unknown(), 'must be a JSON Schema, an object');

/** Tools of a server have a type and often no schema. */
const tool = z.looseObject({
  type: z.string().nullish(),
  name: z.string().nullish(),
  description: z.string().nullish(),
  input_schema: jsonSchema.nullish(),
});

const outputFormat = z.looseObject({ type: z.string('must be a string'), schema: jsonSchema.nullish() });

export const messagesRequest = z.looseObject({
  model: askedModel,
  messages: z.array(said, 'must be a list'),
  system: blockContent.nullish(),
  stream: z.boolean('must be true or false').nullish(),
  stop_sequences: stopSequences.nullish(),
  tools: z.array(tool, 'must be a list').nullish(),
  tool_choice: z.looseObject({ type: z.string('must be a string'), name: z.string().nullish() }).nullish(),
  output_config: z.looseObject({ format: outputFormat.nullish(), effort: z.string().nullish() }).nullish(),
  /** What `output_config.format` was called while it was tried out. */
  output_format: outputFormat.nullish(),
  thinking: z.looseObject({ type: z.string('must be a string'), budget_tokens: z.number().nullish() }).nullish(),
  metadata: z.looseObject({ user_id: z.string('must be a string').nullish() }).nullish(),
});
export type MessagesRequest = z.infer<typeof messagesRequest>;
export type SaidMessage = MessagesRequest['messages'][number];
