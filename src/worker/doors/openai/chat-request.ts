import { invalid } from '../../../shared/errors.js';
import type { Message } from '../../../shared/job.js';
import type { OrderedSchema } from '../../jobs/job-order.js';
import { type Asked, ignoredFields } from '../door.js';
import { joined, lastOfUser, messageOf } from '../parts.js';
import { argumentsSchema, calledTool, type OfferedTool, type ToolWish } from '../tools.js';
import type { ChatCompletionRequest, ChatMessage } from './chat-schema.js';
import { type PartForms, partsOf, textOf } from './content.js';
import { effortOf, schemaOf } from './options.js';

/** Fields that are followed, refused where they ask for too much, or said of below where they mean nothing. */
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

export interface AskedChat extends Asked {
  readonly wantsUsage: boolean;
}

/** The job that a chat completion asks for. Throws `validation_error` for what this service can't do. */
export function askedByChat(body: ChatCompletionRequest): AskedChat {
  refuseUnable(body);
  const { model } = body;
  const { system, asked, history } = spokenIn(body);
  const called = calledTool(toolsOf(body), wishOf(body));
  const schema = called === null ? formatOf(body) : { path: 'tools', value: argumentsSchema(called) };
  const effort = effortOf(body.reasoning_effort);
  const stop = schema === undefined ? stopsOf(body) : [];
  const stream = body.stream === true;
  return {
    order: { text: asked.text, images: asked.images, history, system, model, schema, effort, stop, stream },
    model,
    tool: called?.name ?? null,
    ignored: [...ignoredFields(body, known), ...meaningless(body, called !== null, schema !== undefined)],
    effortField: 'reasoning_effort',
    wantsUsage: body.stream_options?.include_usage === true,
  };
}

function refuseUnable({ n, logprobs, top_logprobs, audio, modalities }: ChatCompletionRequest): void {
  if (n != null && n !== 1) throw invalid('n', 'must be 1: there is one answer');
  if (logprobs === true) throw invalid('logprobs', 'are not known here');
  if ((top_logprobs ?? 0) > 0) throw invalid('top_logprobs', 'are not known here');
  if (audio != null) throw invalid('audio', 'is not possible here');
  if (modalities?.some((each) => each !== 'text')) throw invalid('modalities', 'must be text alone');
}

/** Fields that are known, and mean nothing in this request. */
function meaningless(body: ChatCompletionRequest, isCall: boolean, hasSchema: boolean): string[] {
  const { tools, tool_choice: choice, response_format: format, reasoning_effort: effort } = body;
  return [
    ...((tools ?? []).length > 0 && !isCall ? ['tools'] : []),
    ...(choice != null && !isCall ? ['tool_choice'] : []),
    ...(format != null && format.type !== 'text' && isCall ? ['response_format'] : []),
    ...(stopsOf(body).length > 0 && hasSchema ? ['stop'] : []),
    ...(effort != null && effortOf(effort) === undefined ? ['reasoning_effort'] : []),
  ];
}

/** What is said in the request. */
function spokenIn({ messages }: ChatCompletionRequest) {
  const told = messages.flatMap((each, index) =>
    isSystem(each) ? [textOf(each.content ?? '', `messages.${index}.content`, chatParts)] : [],
  );
  const spoken = messages.flatMap((each, index) => (isSystem(each) ? [] : [messageSaid(each, `messages.${index}`)]));
  return { system: joined(told), ...lastOfUser(spoken, 'messages') };
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer';
}

/** A call that was made stands in the history as its arguments, as which the model has said it. */
function messageSaid({ role, content, tool_calls: calls }: ChatMessage, path: string): Message {
  if (role === 'tool' || role === 'function')
    throw invalid(`${path}.role`, `${role} is not possible: there are no tools here`);
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`${path}.role`, 'must be system, developer, user or assistant');
  if (role === 'user' && content == null) throw invalid(`${path}.content`, 'must be sent');
  const called = (calls ?? []).map((call) => ({ type: 'text' as const, text: call.function?.arguments ?? '' }));
  return messageOf(role, [...partsOf(content ?? '', `${path}.content`, chatParts, role === 'user'), ...called]);
}

function stopsOf({ stop }: ChatCompletionRequest): string[] {
  const sequences = typeof stop === 'string' ? [stop] : (stop ?? []);
  return sequences.filter((sequence) => sequence !== '');
}

function toolsOf({ tools }: ChatCompletionRequest): OfferedTool[] {
  return (tools ?? []).flatMap(({ function: offered }) => {
    if (offered === undefined) return [];
    const { name, description, parameters } = offered;
    return [{ name, description: description ?? undefined, schema: parameters ?? undefined }];
  });
}

function wishOf({ tool_choice: choice }: ChatCompletionRequest): ToolWish {
  if (choice === 'required') return { kind: 'any' };
  if (choice == null || typeof choice === 'string') return { kind: 'free' };
  return { kind: 'named', name: choice.function.name };
}

function formatOf({ response_format: format }: ChatCompletionRequest): OrderedSchema | undefined {
  if (format == null) return undefined;
  const path = 'response_format';
  return schemaOf({
    type: format.type,
    path,
    schema: format.json_schema?.schema,
    schemaPath: `${path}.json_schema.schema`,
  });
}
