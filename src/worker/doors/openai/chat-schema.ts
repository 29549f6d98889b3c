import { z } from 'zod';
import { askedModel, plainText, stopSequence, stopSequences } from '../parts.js';
import { content } from './content.js';
import { jsonSchema, named, streamed } from './options.js';

const madeCall = z.looseObject({ arguments: plainText });
const customCall = z.looseObject({ input: plainText });
const toolCall = z.looseObject({ function: madeCall.optional(), custom: customCall.optional() });

const message = z.looseObject({
  role: z.string('must be a string'),
  content: content.nullish(),
  tool_calls: z.array(toolCall, 'must be a list').nullish(),
  function_call: madeCall.nullish(),
});

const offered = z.looseObject({ name: named, description: named.nullish(), parameters: jsonSchema.nullish() });
const tool = z.looseObject({ type: named, function: offered.optional() });

const unknownChoice = 'must be none, auto, required or one function';
const toolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required']),
    z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
  ],
  unknownChoice,
);

const functionCall = z.union(
  [z.enum(['none', 'auto']), z.looseObject({ name: z.string() })],
  'must be none, auto or one function',
);

const responseFormat = z.looseObject({
  type: named,
  json_schema: z.looseObject({ schema: jsonSchema.nullish() }).nullish(),
  schema: jsonSchema.nullish(),
});

const stop = z.union(
  [stopSequence, stopSequences],
  'must be text, or a list of 16 at most, each of 500 characters at most',
);

export const chatCompletionRequest = z.looseObject({
  model: askedModel,
  messages: z.array(message, 'must be a list'),
  stream: streamed,
  stream_options: z.looseObject({ include_usage: z.boolean('must be true or false').nullish() }).nullish(),
  stop: stop.nullish(),
  n: z.number('must be a number').nullish(),
  logprobs: z.boolean('must be true or false').nullish(),
  top_logprobs: z.number('must be a number').nullish(),
  modalities: z.array(z.string(), 'must be a list').nullish(),
  tools: z.array(tool, 'must be a list').nullish(),
  tool_choice: toolChoice.nullish(),
  functions: z.array(offered, 'must be a list').nullish(),
  function_call: functionCall.nullish(),
  response_format: responseFormat.nullish(),
  guided_json: z.union([z.string(), jsonSchema], 'must be a JSON Schema, an object, or its JSON').nullish(),
  reasoning_effort: named.nullish(),
  user: named.nullish(),
});
export type ChatCompletionRequest = z.infer<typeof chatCompletionRequest>;
export type ChatMessage = ChatCompletionRequest['messages'][number];
