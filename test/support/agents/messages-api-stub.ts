import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFault, type ModelRules } from './messages-api-rules.js';
import { listeningServer, StubApi } from './stub-api.js';

/** Content blocks as their deltas. */
type Blocks = readonly (readonly string[])[];

type Headers = Readonly<Record<string, string>>;

interface Thought {
  /** Text as its deltas; a thought without a delta is redacted. */
  readonly deltas: readonly string[];
  readonly signature: string;
}

/** Tool call by the model. */
export interface ToolCall {
  readonly name: string;
  readonly input: unknown;
  /** Id of the call; generated if not set. */
  readonly id?: string;
  /** Raw input, if not valid JSON, such as cut off. */
  readonly json?: string;
  /** Sends only the first piece of the input. */
  readonly isUnfinished?: true;
}

/** Web search that the API has made: the pages it found, or an error code. */
export interface ApiSearch {
  readonly query: string;
  readonly found: readonly { readonly title: string; readonly url: string }[] | string;
}

/** Treatment of one request by the stub. */
export type Behaviour =
  | {
      readonly kind: 'says';
      /** Sent before all other blocks; a thought without text is redacted. */
      readonly thoughts: readonly Thought[];
      readonly blocks: Blocks;
      readonly pauseMs: number;
      readonly breaks: boolean;
      readonly calls: readonly ToolCall[];
      /** Citations of the blocks, by their index. */
      readonly citations?: Readonly<Record<number, object>>;
      /** Web search by the API itself, sent before the text. */
      readonly search?: ApiSearch;
      /** The model that answers, if it is another than the one that was asked. */
      readonly model?: string;
      readonly stopReason?: string;
      readonly stopSequence?: string | null;
      /** Category of the API's refusal. */
      readonly refusalCategory?: string;
      readonly headers?: Headers;
    }
  | {
      readonly kind: 'refuses';
      readonly status: number;
      readonly type: string;
      readonly message: string;
      readonly mayRetry: boolean;
      readonly headers?: Headers;
    }
  | { readonly kind: 'stalls' };

type Saying = Extract<Behaviour, { readonly kind: 'says' }>;
type Refusal = Extract<Behaviour, { readonly kind: 'refuses' }>;

/** Token usage in every answer. */
export const tokens = { input: 10, cacheCreation: 3, cacheRead: 5, output: 7 } as const;

export function says(...deltas: readonly string[]): Saying {
  return { kind: 'says', thoughts: [], blocks: [deltas], pauseMs: 0, breaks: false, calls: [] };
}

/** Pauses before each delta. */
export function saysSlowly(pauseMs: number, ...deltas: readonly string[]): Saying {
  return { ...says(...deltas), pauseMs };
}

/** Sends each text in a separate content block. */
export function saysInBlocks(...texts: readonly string[]): Saying {
  return { ...says(), blocks: texts.map((text) => [text]) };
}

/** Sends each text in a separate content block, one of which has a citation. */
export function cites(citation: object, index: number, ...texts: readonly string[]): Saying {
  return { ...saysInBlocks(...texts), citations: { [index]: citation } };
}

/** Cuts the connection after these deltas. */
export function breaksAfter(...deltas: readonly string[]): Saying {
  return breaksIn(says(...deltas));
}

/** Sends everything but the message end, then cuts the connection. */
export function breaksIn(said: Saying): Saying {
  return { ...said, breaks: true };
}

/** Ends the message with this stop reason. */
export function endsFor(stopReason: string, said: Saying): Saying {
  return { ...said, stopReason };
}

/** Searches the web, then sends this text. */
export function searchesAndSays(search: ApiSearch, text: string): Saying {
  return { ...says(text), search };
}

/** Whether the request offers the API's own web search. */
export function offersSearch({ body }: MessagesRequest): boolean {
  return body.tools?.some(({ type }) => type?.startsWith('web_search')) === true;
}

/** Sends this text, then calls the tool that runs a command. */
export function saysAndRuns(text: string, command: string): Saying {
  return { ...says(text), calls: [{ name: 'Bash', input: { command, description: 'a command of the test' } }] };
}

/** Sends text, then a value, as when the CLI requires an answer to fit a schema. */
export function saysAndGives(text: string, value: unknown): Saying {
  return saysAndCalls(text, { name: 'StructuredOutput', input: value });
}

/** Sends this text, if not empty, then calls these tools in one message. */
export function saysAndCalls(text: string, ...calls: readonly ToolCall[]): Saying {
  return { ...says(text), blocks: text === '' ? [] : [[text]], calls };
}

/** Sends a thought first, in two deltas with a signature, then a redacted thought. */
export function thinking(said: Saying, signature = 'proof'): Saying {
  const thoughts = [
    { deltas: ['Let me ', 'think.'], signature },
    { deltas: [], signature: 'sealed' },
  ];
  return { ...said, thoughts };
}

/** Begins an answer that a safety classifier then stops. */
export function declines(text: string): Saying {
  return { ...says(text), stopReason: 'refusal' };
}

/** Repeats the last user text, a few characters per delta. */
export function echoes(request: MessagesRequest): Saying {
  const last = conversationOf(request).findLast(({ role }) => role === 'user');
  return says(...(last?.text.match(/.{1,7}/gsu) ?? ['']));
}

/** Sends headers, then no body. */
export const stalls: Behaviour = { kind: 'stalls' };

/** Errors of the real API, with headers that forbid retries, because the CLI would wait for seconds between retries. */
export const refusals = {
  unauthorized: refuses(401, 'authentication_error', 'invalid x-api-key'),
  outOfCredit: refuses(402, 'billing_error', 'Your credit balance is too low to access the Anthropic API.'),
  forbidden: refuses(403, 'permission_error', 'Your API key does not have permission to use the specified resource'),
  modelUnknown: refuses(404, 'not_found_error', 'model: claude-of-tomorrow'),
  promptTooLong: refuses(400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
  requestTooLarge: refuses(413, 'request_too_large', 'Request exceeds the maximum size'),
  rateLimited: refuses(429, 'rate_limit_error', 'This request would exceed your rate limit'),
  overloaded: refuses(529, 'overloaded_error', 'Overloaded'),
  broken: refuses(500, 'api_error', 'Internal server error'),
} as const;

export function refuses(status: number, type: string, message: string): Refusal {
  return { kind: 'refuses', status, type, message, mayRetry: false };
}

/** Returns the API's headers for the five-hour window of a subscription; `resetsAt` in seconds since the epoch. */
export function fiveHours(status: 'allowed' | 'allowed_warning' | 'rejected', utilization: number, resetsAt: number) {
  const prefix = 'anthropic-ratelimit-unified';
  return {
    [`${prefix}-status`]: status,
    [`${prefix}-reset`]: String(resetsAt),
    [`${prefix}-representative-claim`]: 'five_hour',
    [`${prefix}-5h-status`]: status,
    [`${prefix}-5h-utilization`]: String(utilization),
    [`${prefix}-5h-reset`]: String(resetsAt),
  };
}

/** Stub of the Messages API on loopback. Refuses requests that the real API refuses. */
export class MessagesApi extends StubApi {
  readonly requests: MessagesRequest[] = [];
  /** Reasons of the refusals by `rules`, in order. */
  readonly faults: string[] = [];
  /** Rules to check requests with; null accepts all. */
  rules: ModelRules | null = {};
  /** Returns the treatment of each request; `index` counts from 0. Tests may replace it at any time. */
  behave: (request: MessagesRequest, index: number) => Behaviour = () => says('Hello', ', wor', 'ld');

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') return void response.end();
    const body = (await json(request)) as MessagesBody;
    const received = { headers: request.headers, body, clientPort: request.socket.remotePort ?? 0 };
    const index = this.requests.push(received) - 1;
    const fault = this.rules === null ? null : findFault(received.body, this.rules);
    if (fault !== null) this.faults.push(fault);
    const behaviour = fault === null ? this.behave(received, index) : refuses(400, 'invalid_request_error', fault);
    await new Reply(response, received).send(behaviour);
  }
}

export async function startMessagesApi(port = 0): Promise<MessagesApi> {
  return new MessagesApi(await listeningServer(port));
}

const contentType = { stream: 'text/event-stream; charset=utf-8', json: 'application/json' };
const requestId = 'req_of_the_stub';
/** Time in which claude and the service, on a busy machine, pass on what the API has written before it cuts the connection. */
const breakMs = 1500;

class Reply {
  readonly #response: ServerResponse;
  #model: string;
  readonly #streams: boolean;

  constructor(response: ServerResponse, { body }: MessagesRequest) {
    this.#response = response;
    this.#model = body.model;
    this.#streams = body.stream === true;
  }

  async send(behaviour: Behaviour): Promise<void> {
    const { headers = {} } = behaviour.kind === 'stalls' ? {} : behaviour;
    for (const [name, value] of Object.entries(headers)) this.#response.setHeader(name, value);
    if (behaviour.kind === 'refuses') return this.#refuse(behaviour);
    if (behaviour.kind === 'says') this.#model = behaviour.model ?? this.#model;
    if (behaviour.kind === 'says' && !this.#streams) return this.#json(200, this.#message(behaviour.blocks));
    this.#response.writeHead(200, { 'content-type': contentType.stream, 'request-id': requestId }).flushHeaders();
    if (behaviour.kind === 'says') await this.#say(behaviour);
  }

  async #say({ thoughts, blocks, pauseMs, breaks, calls, ...ending }: Saying): Promise<void> {
    const { stopReason, stopSequence = null, refusalCategory, search, citations = {} } = ending;
    const before = thoughts.length + (search === undefined ? 0 : 2);
    this.#event({ type: 'message_start', message: { ...this.#message([]), stop_reason: null } });
    for (const [index, thought] of thoughts.entries()) this.#think(index, thought);
    if (search !== undefined) this.#search(thoughts.length, search);
    for (const [index, deltas] of blocks.entries()) {
      await this.#block(before + index, deltas, pauseMs, index === 0);
      const delta = citations[index] && { type: 'citations_delta', citation: citations[index] };
      if (delta) this.#event({ type: 'content_block_delta', index: before + index, delta });
    }
    const isOpen = breaks && calls.length === 0;
    if (blocks.length > 0 && !isOpen) this.#event({ type: 'content_block_stop', index: before + blocks.length - 1 });
    for (const [at, call] of calls.entries()) this.#call(before + blocks.length + at, call);
    if (breaks) return void setTimeout(() => this.#response.destroy(), breakMs);
    if (calls.some(({ isUnfinished }) => isUnfinished)) return;
    const usualReason = calls.length === 0 ? 'end_turn' : 'tool_use';
    const details = refusalCategory && {
      stop_details: { type: 'refusal', category: refusalCategory, explanation: null },
    };
    const delta = { stop_reason: stopReason ?? usualReason, stop_sequence: stopSequence, ...details };
    const made = search === undefined ? {} : { server_tool_use: { web_search_requests: 1 } };
    this.#event({ type: 'message_delta', delta, usage: { output_tokens: tokens.output, ...made } });
    this.#event({ type: 'message_stop' });
    this.#response.end();
  }

  /** Sends a content block without its end. */
  async #block(index: number, deltas: readonly string[], pauseMs: number, isFirst: boolean): Promise<void> {
    if (!isFirst) this.#event({ type: 'content_block_stop', index: index - 1 });
    this.#event({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } });
    for (const text of deltas) {
      if (pauseMs > 0) await sleep(pauseMs);
      if (this.#response.destroyed) return;
      this.#delta(index, text);
    }
  }

  #think(index: number, { deltas, signature }: Thought): void {
    const isSealed = deltas.length === 0;
    const content_block = isSealed
      ? { type: 'redacted_thinking', data: signature }
      : { type: 'thinking', thinking: '', signature: '' };
    this.#event({ type: 'content_block_start', index, content_block });
    const thought = deltas.map((thinking) => ({ type: 'thinking_delta', thinking }));
    for (const delta of isSealed ? [] : [...thought, { type: 'signature_delta', signature }])
      this.#event({ type: 'content_block_delta', index, delta });
    this.#event({ type: 'content_block_stop', index });
  }

  #search(index: number, { query, found }: ApiSearch): void {
    const id = `srvtoolu_${randomUUID()}`;
    const use = { type: 'server_tool_use', id, name: 'web_search', input: {} };
    const page = { type: 'web_search_result', encrypted_content: 'sealed', page_age: null };
    const content =
      typeof found === 'string'
        ? { type: 'web_search_tool_result_error', error_code: found }
        : found.map((each) => ({ ...page, ...each }));
    this.#event({ type: 'content_block_start', index, content_block: use });
    const delta = { type: 'input_json_delta', partial_json: JSON.stringify({ query }) };
    this.#event({ type: 'content_block_delta', index, delta });
    this.#event({ type: 'content_block_stop', index });
    const result = { type: 'web_search_tool_result', tool_use_id: id, content };
    this.#event({ type: 'content_block_start', index: index + 1, content_block: result });
    this.#event({ type: 'content_block_stop', index: index + 1 });
  }

  #delta(index: number, text: string): void {
    this.#event({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } });
  }

  /** Sends a call, with its input in two pieces. */
  #call(index: number, { name, input, isUnfinished, ...call }: ToolCall): void {
    const { id = `toolu_${randomUUID()}`, json = JSON.stringify(input) } = call;
    this.#event({ type: 'content_block_start', index, content_block: { type: 'tool_use', id, name, input: {} } });
    for (const piece of isUnfinished ? [json.slice(0, 5)] : [json.slice(0, 5), json.slice(5)])
      this.#event({ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: piece } });
    if (!isUnfinished) this.#event({ type: 'content_block_stop', index });
  }

  #event(event: { readonly type: string; readonly [field: string]: unknown }): void {
    this.#response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }

  #refuse({ status, type, message, mayRetry }: Refusal): void {
    this.#response.setHeader('x-should-retry', String(mayRetry));
    this.#json(status, { type: 'error', error: { type, message }, request_id: requestId });
  }

  #json(status: number, body: unknown): void {
    this.#response.writeHead(status, { 'content-type': contentType.json, 'request-id': requestId });
    this.#response.end(JSON.stringify(body));
  }

  #message(blocks: Blocks) {
    return {
      id: `msg_${randomUUID()}`, // the CLI joins messages with equal ids
      type: 'message',
      role: 'assistant',
      model: this.#model,
      content: blocks.map((deltas) => ({ type: 'text', text: deltas.join('') })),
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: tokens.input,
        cache_creation_input_tokens: tokens.cacheCreation,
        cache_read_input_tokens: tokens.cacheRead,
        output_tokens: tokens.output,
      },
    };
  }
}

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly source?: unknown;
}

/** Fields of a request body that tests check. */
interface MessagesBody {
  readonly model: string;
  readonly stream?: boolean;
  readonly max_tokens: number;
  readonly system?: string | readonly Block[];
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Block[] }[];
  readonly tools?: readonly { readonly name: string; readonly type?: string; readonly input_schema?: unknown }[];
  readonly output_config?: { readonly effort?: string };
  readonly tool_choice?: unknown;
  readonly thinking?: unknown;
  readonly temperature?: number;
  readonly top_p?: number;
  readonly stop_sequences?: readonly string[];
}

export interface MessagesRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: MessagesBody;
  /** Port of the connection at the side of the CLI. */
  readonly clientPort: number;
}

/** Returns the texts of users and model, without texts that the CLI adds. */
export function conversationOf({ body }: MessagesRequest): { readonly role: string; readonly text: string }[] {
  return body.messages
    .filter(({ role }) => role !== 'system')
    .flatMap(({ role, content }) => textsOf(content).map((text) => ({ role, text })))
    .filter(({ text }) => !text.startsWith('<system-reminder>\nAs you answer'));
}

/** Returns the texts of the system blocks. */
export function systemOf({ body }: MessagesRequest): readonly string[] {
  return textsOf(body.system ?? []);
}

function textsOf(content: string | readonly Block[]): readonly string[] {
  return typeof content === 'string' ? [content] : content.map(({ text }) => text ?? '');
}
