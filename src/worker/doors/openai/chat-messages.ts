import { invalid } from '../../../shared/errors.js';
import type { Message } from '../../../shared/job.js';
import { partFieldIn } from '../failures.js';
import { ignoredIn } from '../ignored.js';
import { joined, lastOfUser, messageOf, type Part } from '../parts.js';
import { namesOfCalls, resultParts } from '../tools.js';
import type { ChatCompletionRequest, ChatMessage } from './chat-schema.js';
import { type PartForms, partsOf, textOf } from './content.js';

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
  const told = messages.flatMap((each, index) =>
    isSystem(each) ? [textOf(each.content ?? '', `messages.${index}.content`, chatParts)] : [],
  );
  const calls = messages.flatMap(({ tool_calls: calls }) => calls ?? []);
  const names = namesOfCalls(calls.map((call) => [call.id, (call.function ?? call.custom)?.name] as const));
  const spoken = messages.flatMap((each, index) =>
    isSystem(each) ? [] : [messageSaid(each, `messages.${index}`, names)],
  );
  return { system: joined(told), ...lastOfUser(spoken, 'messages') };
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
