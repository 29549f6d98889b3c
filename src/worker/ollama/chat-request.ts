import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { Message } from '../../shared/job.js';
import { callIdAt } from '../../shared/text/chain.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import { fieldsOf, ignoredIn, type ParsedRequest, sdkRequest } from '../jobs/job-request.js';
import {
  joined,
  lastOfUser,
  messageOf,
  type Part,
  plainText,
  resultOf,
  resultParts,
  type ShownPart,
} from '../jobs/message-parts.js';
import { callInput, type ParsedTools, parsedTools } from '../jobs/tool-offer.js';
import { commonFields, images, imagesIn, wishesIn } from './request.js';

const mustBeString = 'must be a string';
const object = z.record(z.string(), z.unknown());

const call = z.looseObject({
  id: z.string(mustBeString).nullish(),
  function: z.looseObject({
    name: plainText,
    arguments: z.union([object, plainText], 'must be an object').nullish(),
  }),
});

const message = z.looseObject({
  role: z.string(mustBeString),
  content: plainText.nullish(),
  images: images.nullish(),
  tool_calls: z.array(call, 'must be a list').nullish(),
  tool_name: z.string(mustBeString).nullish(),
  /** Older name of `tool_name`. */
  name: z.string(mustBeString).nullish(),
  tool_call_id: z.string(mustBeString).nullish(),
});
type OllamaMessage = z.infer<typeof message>;

const tool = z.looseObject({
  type: z.string(mustBeString).nullish(),
  function: z
    .looseObject({
      name: z.string(mustBeString),
      description: z.string(mustBeString).nullish(),
      parameters: object.nullish(),
    })
    .optional(),
});

export const ollamaChatRequest = z.looseObject({
  ...commonFields,
  messages: z.array(message, 'must be a list').nullish(),
  tools: z.array(tool, 'must be a list').nullish(),
});
export type OllamaChatRequest = z.infer<typeof ollamaChatRequest>;

/**
 * Assigns results to calls. Older clients drop the ids of calls, so calls get ids by their position in the
 * conversation. A result belongs to the call that it names, else to the first open call of its function, else to the
 * first open call. Results without a call and calls without a result, which Ollama accepts, become text.
 */
class UnansweredCalls {
  #count = 0;
  #open: { readonly id: string; readonly sentId: string | null; readonly name: string }[] = [];
  readonly #unanswered = new Set<string>();
  /** New ids of the calls with results, by their temporary ids. */
  readonly #ids = new Map<string, string>();

  /** Marks the open calls as unanswered: no results can follow. */
  close(): void {
    for (const { id } of this.#open.splice(0)) this.#unanswered.add(id);
  }

  add(name: string, sentId: string | null): string {
    const id = `${this.#count++}`;
    this.#open.push({ id, sentId, name });
    return id;
  }

  /** Returns the id of the call that the result belongs to, or null if no call is open. */
  take({ tool_call_id: sentId, tool_name: name, name: olderName }: OllamaMessage): string | null {
    const wanted = name ?? olderName ?? null;
    const byId = this.#open.findIndex((call) => call.sentId !== null && call.sentId === sentId);
    const byName = this.#open.findIndex((call) => call.name === wanted);
    const [taken] = this.#open.splice([byId, byName, 0].find((at) => at >= 0) ?? 0, 1);
    return taken?.id ?? null;
  }

  /** Returns the message with new ids; calls without a result become text. Messages must be passed in order. */
  numberCalls({ calls = [], results, text, ...message }: Message): Message {
    const answered = calls.filter(({ id }) => !this.#unanswered.has(id));
    const unanswered = calls.filter(({ id }) => this.#unanswered.has(id)).map(({ input }) => input);
    for (const { id } of answered) this.#ids.set(id, callIdAt(this.#ids.size));
    const ownId = <T extends { readonly id: string }>(part: T) => ({ ...part, id: this.#ids.get(part.id) ?? part.id });
    return {
      ...{ ...message, text: unanswered.length === 0 ? text : (joined([text, ...unanswered]) ?? '') },
      ...(answered.length > 0 && { calls: answered.map(ownId) }),
      ...(results && { results: results.map(ownId) }),
    };
  }
}

function conversationIn(messages: readonly OllamaMessage[], hasTools: boolean) {
  const roles = messages.map(({ role }) => role.toLowerCase());
  const instructed = messages.filter((_, index) => roles[index] === 'system');
  const calls = new UnansweredCalls();
  const spoken = messages.flatMap((each, index) => {
    const role = roles[index] ?? '';
    if (role === 'system') return [];
    if (role === 'assistant' && roles[index - 1] !== 'assistant') calls.close();
    return [parseMessage({ ...each, role }, `messages.${index}`, hasTools, calls)];
  });
  calls.close();
  const numbered = spoken.map((message) => calls.numberCalls(message));
  return { system: joined(instructed.map(({ content }) => content ?? '')), ...lastOfUser(numbered, 'messages') };
}

/** Translates one message. Without tools, calls and results become text. */
function parseMessage(message: OllamaMessage, path: string, hasTools: boolean, calls: UnansweredCalls): Message {
  const { role } = message;
  if (role === 'user') return messageOf(role, partsOf(message, path));
  if (role === 'tool') {
    const parts = partsOf(message, path);
    const id = hasTools ? calls.take(message) : null;
    return messageOf(
      'user',
      id === null ? resultParts(message.tool_name ?? message.name, parts) : [resultOf(id, parts, false)],
    );
  }
  if (role !== 'assistant') throw invalid(`${path}.role`, 'must be system, user, assistant or tool');
  if ((message.images ?? []).length > 0)
    throw invalid(`${path}.images`, 'must not be sent: only messages of the user may have images');
  return messageOf(role, [...partsOf(message, path), ...callsIn(message, hasTools, calls)]);
}

function partsOf({ content, images: shown }: OllamaMessage, path: string): ShownPart[] {
  return [...imagesIn(shown ?? [], `${path}.images`), { type: 'text', text: content ?? '' }];
}

function callsIn({ tool_calls: made }: OllamaMessage, hasTools: boolean, calls: UnansweredCalls): Part[] {
  return (made ?? []).map(({ id, function: { name, arguments: sent } }) => {
    const text = typeof sent === 'string' ? sent : stringifyExactly(sent ?? {});
    const input = hasTools ? callInput(text) : text;
    return hasTools ? { type: 'call', id: calls.add(name, id ?? null), name, input } : { type: 'text', text: input };
  });
}

function toolsIn({ tools }: OllamaChatRequest): ParsedTools {
  const sent = (tools ?? []).map(({ type, function: offered }, index) => {
    const path = `tools.${index}`;
    const kind = type == null || type === 'function' ? 'function' : 'provider';
    if (kind === 'provider') return { path, kind, type: type ?? '', name: null } as const;
    if (offered === undefined) throw invalid(`${path}.function`, 'must be sent');
    const { name, description, parameters: schema } = offered;
    return { path: `${path}.function`, kind, type: 'function', name, description, schema } as const;
  });
  return parsedTools(sent, { choice: 'auto', path: 'tools', isParallel: true });
}

const known = fieldsOf(ollamaChatRequest, 'keep_alive');
const knownOfMessage = new Set(['thinking', ...fieldsOf(message)]);
const knownOfTool = fieldsOf(tool);

/** Returns null for a request that only loads the model. Throws `validation_error` for unsupported requests. */
export function parseOllamaChat(body: OllamaChatRequest): ParsedRequest | null {
  const messages = body.messages ?? [];
  if (messages.length === 0) return null;
  const { job, ignored, ...wishes } = wishesIn(body);
  const tools = toolsIn(body);
  return sdkRequest({
    body,
    known,
    conversation: conversationIn(messages, tools.offer !== undefined),
    tools,
    job: { ...job, hasCallIds: false },
    ...wishes,
    ignored: [
      ...ignored,
      ...ignoredIn('messages', messages, knownOfMessage),
      ...ignoredIn('tools', body.tools ?? [], knownOfTool),
    ],
    imageField: imageFieldOf(messages),
  });
}

function imageFieldOf(messages: readonly OllamaMessage[]): string | null {
  const at = messages.findIndex(({ images: shown }) => (shown ?? []).length > 0);
  return at < 0 ? null : `messages.${at}.images.0`;
}
