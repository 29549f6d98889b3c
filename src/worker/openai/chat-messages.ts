import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { Message } from '../../shared/job.js';
import { ignoredIn, partFieldIn } from '../jobs/job-request.js';
import {
  askedModel,
  joined,
  lastOfUser,
  messageOf,
  namesOfCalls,
  type Part,
  plainText,
  resultParts,
  stopSequence,
  stopSequences,
} from '../jobs/message-parts.js';
import { content, jsonSchema, named, type PartForms, partsOf, streamed, textOf } from './content.js';

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

const chatParts: PartForms = {
  texts: { text: 'text', refusal: 'refusal' },
  image: {
    type: 'image_url',
    urlIn: ({ image_url: image }) => (isObject(image) ? image.url : image),
    urlField: 'image_url.url',
  },
};

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** What is said in the request. Throws `validation_error` that names the field. */
export function spokenIn({ messages }: ChatCompletionRequest) {
  const instructed = messages.flatMap((each, index) =>
    isSystem(each) ? [textOf(each.content ?? '', `messages.${index}.content`, chatParts)] : [],
  );
  const calls = messages.flatMap(({ tool_calls: calls }) => calls ?? []);
  const names = namesOfCalls(calls.map((call) => [call.id, (call.function ?? call.custom)?.name] as const));
  const spoken = messages.flatMap((each, index) =>
    isSystem(each) ? [] : [messageSaid(each, `messages.${index}`, names)],
  );
  return { system: joined(instructed), ...lastOfUser(spoken, 'messages') };
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer';
}

/** A call that was made stands in the history as its arguments, as which the model has said it; its result as text. */
function messageSaid(message: ChatMessage, path: string, names: ReadonlyMap<unknown, unknown>): Message {
  const { role, content } = message;
  if (role === 'tool' || role === 'function') return messageOf('user', resultSaid(message, path, names));
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`${path}.role`, 'must be system, developer, user, assistant or tool');
  if (role === 'user' && content == null) throw invalid(`${path}.content`, 'must be sent');
  const said = partsOf(content ?? '', `${path}.content`, chatParts, role === 'user');
  return messageOf(role, [...said, ...callsIn(message)]);
}

function resultSaid(
  { content, name, tool_call_id: id }: ChatMessage,
  path: string,
  names: ReadonlyMap<unknown, unknown>,
) {
  return resultParts(names.get(id) ?? name, partsOf(content ?? '', `${path}.content`, chatParts, true));
}

function callsIn({ tool_calls: calls, function_call: call }: ChatMessage): Part[] {
  const made = (calls ?? []).map((each) => each.function?.arguments ?? each.custom?.input ?? '');
  return [...made, ...(call == null ? [] : [call.arguments])].map((text) => ({ type: 'text', text }));
}

/** The field of the first image; null where there is none. */
export function imageFieldOf({ messages }: ChatCompletionRequest): string | null {
  const contents = messages.map(({ content }, at) => [`messages.${at}.content`, content] as const);
  return partFieldIn(contents, chatParts.image.type);
}

const knownOfMessage = new Set(['role', 'content', 'tool_calls', 'function_call', 'tool_call_id']);
const knownOfResult = new Set([...knownOfMessage, 'name']);
const knownOfPart = new Set(['type', 'text', 'refusal', 'image_url']);

/** Fields of the messages that mean nothing here. */
export function ignoredInMessages({ messages }: ChatCompletionRequest): string[] {
  const isResult = ({ role }: ChatMessage) => role === 'tool' || role === 'function';
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const images = parts.map(({ image_url: image }) => (isObject(image) ? image : null));
  return [
    ...ignoredIn(
      'messages',
      messages.filter((each) => !isResult(each)),
      knownOfMessage,
    ),
    ...ignoredIn('messages', messages.filter(isResult), knownOfResult),
    ...ignoredIn('messages.content', parts, knownOfPart),
    ...ignoredIn('messages.content.image_url', images, new Set(['url'])),
  ];
}
