import { z } from 'zod';
import { invalid } from '../../../shared/errors.js';
import type { Effort, Message } from '../../../shared/job.js';
import { type Asked, ignoredFields } from '../door.js';
import { imageOfUrl, joined, lastOfUser, messageOf, type Part, plainText } from '../parts.js';
import { argumentsSchema, calledTool, type OfferedTool, type ToolWish } from '../tools.js';

const textPart = z.looseObject({
  type: z.enum(['text', 'refusal']),
  text: plainText.optional(),
  refusal: plainText.optional(),
});
const imagePart = z.looseObject({ type: z.literal('image_url'), image_url: z.looseObject({ url: z.string() }) });
const otherPart = z.looseObject({ type: z.string() });
const content = z.union([plainText, z.array(z.union([textPart, imagePart, otherPart]))]);

const toolCall = z.looseObject({ function: z.looseObject({ arguments: plainText }).optional() });

const message = z.looseObject({
  role: z.string(),
  content: content.nullish(),
  tool_calls: z.array(toolCall).nullish(),
});

const objectSchema = z.record(z.string(), z.unknown());

const tool = z.looseObject({
  type: z.string(),
  function: z
    .looseObject({ name: z.string(), description: z.string().optional(), parameters: objectSchema.nullish() })
    .optional(),
});

const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.looseObject({ type: z.string(), function: z.looseObject({ name: z.string() }).optional() }),
]);

const responseFormat = z.looseObject({
  type: z.string(),
  json_schema: z.looseObject({ schema: objectSchema }).optional(),
});

const stop = z.union([plainText, z.array(plainText).max(16, 'must be 16 at most')]);

export const chatCompletionRequest = z.looseObject({
  model: z.string(),
  messages: z.array(message),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  stop: stop.nullish(),
  n: z.number().nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().nullish(),
  audio: z.unknown().optional(),
  modalities: z.array(z.string()).nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  response_format: responseFormat.nullish(),
  reasoning_effort: z.string().nullish(),
  user: z.string().nullish(),
});
export type ChatCompletionRequest = z.infer<typeof chatCompletionRequest>;

type ChatMessage = ChatCompletionRequest['messages'][number];

/** Fields that are followed, or refused where they ask for too much. */
const known = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'stop',
  'n',
  'logprobs',
  'modalities',
  'response_format',
  'reasoning_effort',
  'tools',
  'tool_choice',
]);

export interface AskedChat extends Asked {
  readonly wantsUsage: boolean;
}

/** The job that a chat completion asks for. Throws `validation_error` for what this service can't do. */
export function askedByChat(body: ChatCompletionRequest): AskedChat {
  refuseUnable(body);
  const system = joined(body.messages.filter(isSystem).map((each) => textOf(each.content)));
  const spoken = body.messages.flatMap((each, index) => (isSystem(each) ? [] : [spokenBy(each, `messages.${index}`)]));
  const { asked, history } = lastOfUser(spoken, 'messages');
  const called = calledTool(toolsOf(body), wishOf(body));
  const schema = called === null ? schemaOf(body) : { path: 'tools', value: argumentsSchema(called) };
  const effort = effortOf(body.reasoning_effort);
  const stop = schema === undefined ? stopsOf(body.stop) : [];
  const stream = body.stream === true;
  return {
    order: { text: asked.text, images: asked.images, history, system, model: body.model, schema, effort, stop, stream },
    model: body.model,
    tool: called?.name ?? null,
    ignored: [...ignoredFields(body, known), ...meaningless(body, called !== null)],
    effortField: 'reasoning_effort',
    wantsUsage: body.stream_options?.include_usage === true,
  };
}

function refuseUnable({ n, logprobs, top_logprobs, audio, modalities }: ChatCompletionRequest): void {
  if (n != null && n !== 1) throw invalid('n', 'must be 1: there is one answer');
  if (logprobs === true || (top_logprobs ?? 0) > 0) throw invalid('logprobs', 'are not known here');
  if (audio != null) throw invalid('audio', 'is not possible here');
  if (modalities?.some((each) => each !== 'text')) throw invalid('modalities', 'must be text alone');
}

/** Fields that are known, and mean nothing in this request. */
function meaningless(body: ChatCompletionRequest, isCall: boolean): string[] {
  const hasTools = (body.tools ?? []).length > 0;
  const hasFormat = body.response_format != null && body.response_format.type !== 'text';
  return [
    ...(hasTools && !isCall ? ['tools'] : []),
    ...(body.tool_choice != null && !isCall ? ['tool_choice'] : []),
    ...(hasFormat && isCall ? ['response_format'] : []),
    ...(body.stop != null && (isCall || hasFormat) ? ['stop'] : []),
    ...(body.reasoning_effort != null && effortOf(body.reasoning_effort) === undefined ? ['reasoning_effort'] : []),
  ];
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer';
}

/** The text of a message that can have no images. */
function textOf(content: ChatMessage['content']): string {
  if (typeof content === 'string') return content;
  return (
    joined((content ?? []).map((part) => ('text' in part && typeof part.text === 'string' ? part.text : ''))) ?? ''
  );
}

function spokenBy(said: ChatMessage, path: string): Message {
  const { role, content, tool_calls: calls } = said;
  if (role === 'tool' || role === 'function')
    throw invalid(`${path}.role`, 'tool is not possible: there are no tools here');
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`${path}.role`, 'must be system, developer, user or assistant');
  if (role === 'user' && content == null) throw invalid(`${path}.content`, 'must be sent');
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : partsOf(content ?? [], path);
  const called = (calls ?? []).map((call) => ({ type: 'text' as const, text: call.function?.arguments ?? '' }));
  return messageOf(role, [...parts, ...called]);
}

function partsOf(content: readonly Readonly<Record<string, unknown>>[], path: string): Part[] {
  return content.map((part, index) => {
    const at = `${path}.content.${index}`;
    if (part.type === 'text' || part.type === 'refusal') return textOfPart(part, at);
    const image = imagePart.safeParse(part);
    if (image.success) return imageOfUrl(image.data.image_url.url, `${at}.image_url.url`);
    throw invalid(`${at}.type`, 'must be text or image_url');
  });
}

function textOfPart(part: Readonly<Record<string, unknown>>, path: string): Part {
  const text = part.type === 'text' ? part.text : part.refusal;
  if (typeof text !== 'string') throw invalid(`${path}.${part.type}`, 'must be a string');
  return { type: 'text', text };
}

function toolsOf({ tools }: ChatCompletionRequest): OfferedTool[] {
  return (tools ?? []).flatMap(({ function: offered }) =>
    offered === undefined
      ? []
      : [{ name: offered.name, description: offered.description, schema: offered.parameters ?? undefined }],
  );
}

function wishOf({ tool_choice: choice }: ChatCompletionRequest): ToolWish {
  if (choice === 'required') return { kind: 'any' };
  if (choice == null || typeof choice === 'string') return { kind: 'free' };
  if (choice.function === undefined) throw invalid('tool_choice', 'must be none, auto, required or one function');
  return { kind: 'named', name: choice.function.name };
}

function schemaOf({ response_format: format }: ChatCompletionRequest): AskedChat['order']['schema'] {
  if (format == null || format.type === 'text') return undefined;
  if (format.type === 'json_object') return { path: 'response_format', value: { type: 'object' } };
  if (format.type !== 'json_schema') throw invalid('response_format.type', 'must be text, json_object or json_schema');
  const value = format.json_schema?.schema;
  if (value === undefined) throw invalid('response_format.json_schema.schema', 'must be sent');
  return { path: 'response_format.json_schema.schema', value };
}

function stopsOf(stop: ChatCompletionRequest['stop']): string[] {
  const sequences = typeof stop === 'string' ? [stop] : (stop ?? []);
  return sequences.filter((sequence) => sequence !== '');
}

const efforts: Readonly<Record<string, Effort>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
};

/** Undefined for none, and for what nobody knows. */
export function effortOf(named: string | null | undefined): Effort | undefined {
  return named == null || !Object.hasOwn(efforts, named) ? undefined : efforts[named];
}
