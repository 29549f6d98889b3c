import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { Message } from '../../shared/job.js';
import { callIdAt } from '../../shared/text/chain.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import type { ParsedRequest } from '../../worker/jobs/job-request.js';
import { messageOf, type Part, type ShownPart } from '../../worker/jobs/message-parts.js';
import { joined, lastOfUser, plainText, resultOf, resultParts } from '../doors/messages.js';
import { fieldsOf, ignoredIn } from '../doors/request-fields.js';
import { sdkRequest } from '../doors/sdk-request.js';
import { callInput, type ParsedTools, parsedTools } from '../doors/tool-offer.js';
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
type OllamaCall = z.infer<typeof call>;

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
 * Returns the ids of the calls with results, by the call and by the message with its result. Older clients drop the
 * ids, so a call gets its id by its position in the conversation. A result belongs to the call that it names, else to
 * the first open call of its function, else to the first open call. Results without a call and calls without a result,
 * which Ollama accepts, have no id here.
 */
function matchCalls(messages: readonly OllamaMessage[]): ReadonlyMap<unknown, string> {
  const results = new Map<OllamaCall, OllamaMessage | null>();
  let open = new OpenCalls();
  for (const [index, message] of messages.entries()) {
    if (message.role === 'assistant') {
      if (messages[index - 1]?.role !== 'assistant') open = new OpenCalls();
      for (const made of message.tool_calls ?? []) {
        open.addCall(made);
        results.set(made, null);
      }
    }
    const answered = message.role === 'tool' ? open.takeFor(message) : undefined;
    if (answered !== undefined) results.set(answered, message);
  }
  const pairs = [...results].filter(([, result]) => result !== null);
  return new Map(pairs.flatMap((pair, place) => pair.map((each) => [each, callIdAt(place)] as const)));
}

/** Calls without a result, in order. Indexed, because a request may have thousands of them. */
class OpenCalls {
  readonly #open = new Set<OllamaCall>();
  readonly #all: CallQueue = { calls: [], first: 0 };
  readonly #byId = new Map<string, CallQueue>();
  readonly #byName = new Map<string, CallQueue>();

  addCall(call: OllamaCall): void {
    const { id, function: made } = call;
    this.#open.add(call);
    this.#all.calls.push(call);
    if (id != null) queueIn(this.#byId, id).calls.push(call);
    queueIn(this.#byName, made.name).calls.push(call);
  }

  /** Removes and returns the call that the result belongs to; undefined if no call is open. */
  takeFor({ tool_call_id: id, tool_name: name, name: olderName }: OllamaMessage): OllamaCall | undefined {
    const called = name ?? olderName;
    const byId = id == null ? undefined : this.#firstIn(this.#byId.get(id));
    const byName = called == null ? undefined : this.#firstIn(this.#byName.get(called));
    const call = byId ?? byName ?? this.#firstIn(this.#all);
    if (call !== undefined) this.#open.delete(call);
    return call;
  }

  #firstIn(queue: CallQueue | undefined): OllamaCall | undefined {
    if (queue === undefined) return undefined;
    for (; queue.first < queue.calls.length; queue.first++) {
      const call = queue.calls[queue.first];
      if (call !== undefined && this.#open.has(call)) return call;
    }
    return undefined;
  }
}

/** Calls, of which those before `first` have a result. */
interface CallQueue {
  readonly calls: OllamaCall[];
  first: number;
}

function queueIn(queues: Map<string, CallQueue>, key: string): CallQueue {
  const queue = queues.get(key) ?? { calls: [], first: 0 };
  queues.set(key, queue);
  return queue;
}

function conversationIn(messages: readonly OllamaMessage[], hasTools: boolean) {
  const sent = messages.map((each) => ({ ...each, role: each.role.toLowerCase() }));
  const ids = hasTools ? matchCalls(sent) : new Map<unknown, string>();
  const instructions = sent.filter(({ role }) => role === 'system').map(({ content }) => content ?? '');
  const spoken = sent.flatMap((each, index) =>
    each.role === 'system' ? [] : [parseMessage(each, `messages.${index}`, ids)],
  );
  return { system: joined(instructions), ...lastOfUser(spoken, 'messages') };
}

/** Translates one message. Calls and results without an id become text. */
function parseMessage(message: OllamaMessage, path: string, ids: ReadonlyMap<unknown, string>): Message {
  const { role } = message;
  if (role === 'user') return messageOf(role, partsOf(message, path));
  if (role === 'tool') {
    const parts = partsOf(message, path);
    const id = ids.get(message);
    const result =
      id === undefined ? resultParts(message.tool_name ?? message.name, parts) : [resultOf(id, parts, false)];
    return messageOf('user', result);
  }
  if (role !== 'assistant') throw invalid(`${path}.role`, 'must be system, user, assistant or tool');
  if ((message.images ?? []).length > 0)
    throw invalid(`${path}.images`, 'must not be sent: only messages of the user may have images');
  const calls = (message.tool_calls ?? []).map((made) => callPart(made, ids.get(made)));
  return messageOf(role, [...partsOf(message, path), ...calls]);
}

function partsOf({ content, images: shown }: OllamaMessage, path: string): ShownPart[] {
  return [...imagesIn(shown ?? [], `${path}.images`), { type: 'text', text: content ?? '' }];
}

function callPart({ function: { name, arguments: sent } }: OllamaCall, id: string | undefined): Part {
  const text = typeof sent === 'string' ? sent : stringifyExactly(sent ?? {});
  return id === undefined ? { type: 'text', text } : { type: 'call', id, name, input: callInput(text) };
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
    job: {
      ...job,
      ...(body.think == null && tools.offer !== undefined && { thinking: 'progress' }),
      hasCallIds: false,
    },
    ...wishes,
    ignored: [
      ...ignored,
      ...ignoredIn('messages', messages, knownOfMessage),
      ...ignoredIn('tools', body.tools ?? [], knownOfTool),
    ],
    imageField: imageFieldOf(messages),
    documentField: null,
  });
}

function imageFieldOf(messages: readonly OllamaMessage[]): string | null {
  const at = messages.findIndex(({ images: shown }) => (shown ?? []).length > 0);
  return at < 0 ? null : `messages.${at}.images.0`;
}
