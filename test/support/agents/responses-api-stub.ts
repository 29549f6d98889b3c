import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { listeningServer, StubApi } from './stub-api.js';

/** Fields of a request body that tests check. */
interface ResponsesBody {
  readonly model: string;
  readonly input: readonly {
    readonly type: string;
    readonly role?: string;
    readonly tools?: readonly unknown[];
    readonly content?: readonly { readonly type: string; readonly text?: string; readonly image_url?: string }[];
  }[];
  readonly instructions?: string;
  readonly tools?: readonly unknown[];
  readonly reasoning?: { readonly effort?: string; readonly summary?: string };
  readonly text?: { readonly format?: { readonly type: string; readonly strict: boolean; readonly schema: unknown } };
}

export interface ResponsesRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: ResponsesBody;
  /** Port of the connection at the side of the CLI. */
  readonly clientPort: number;
}

interface ResponsesEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

type ResponsesHeaders = Readonly<Record<string, string>>;

/** Treatment of one request by the stub. */
export type ResponsesBehaviour =
  | {
      readonly kind: 'says';
      readonly messages: readonly (readonly string[])[];
      readonly pauseMs: number;
      readonly headers?: ResponsesHeaders;
    }
  | { readonly kind: 'sends'; readonly events: readonly ResponsesEvent[] }
  | {
      readonly kind: 'refuses';
      readonly status: number;
      readonly error: Readonly<Record<string, unknown>>;
      readonly headers?: ResponsesHeaders;
    }
  | { readonly kind: 'stalls' };

/** Token usage in every answer. */
export const responseTokens = { input: 20, cached: 5, output: 7 } as const;

export function responds(...deltas: readonly string[]): ResponsesBehaviour & { readonly kind: 'says' } {
  return { kind: 'says', messages: [deltas], pauseMs: 0 };
}

/** Pauses before each delta. */
export function respondsSlowly(pauseMs: number, ...deltas: readonly string[]): ResponsesBehaviour {
  return { ...responds(...deltas), pauseMs };
}

/** Sends each text in a separate message. */
export function respondsInMessages(...texts: readonly string[]): ResponsesBehaviour {
  return { kind: 'says', messages: texts.map((text) => [text]), pauseMs: 0 };
}

/** Sends exactly these events. */
export function sends(...events: readonly ResponsesEvent[]): ResponsesBehaviour {
  return { kind: 'sends', events };
}

/** Sends a reasoning summary first: two parts, the first in two deltas. */
export function reasons(...answer: readonly string[]): ResponsesBehaviour {
  const itemPlace = { item_id: 'rs_0', output_index: 0 };
  const part = (index: number, ...deltas: readonly string[]) => [
    { type: 'response.reasoning_summary_part.added', ...itemPlace, summary_index: index },
    ...deltas.map((delta) => {
      return { type: 'response.reasoning_summary_text.delta', ...itemPlace, summary_index: index, delta };
    }),
  ];
  const summary = ['Reading it', 'Writing it'].map((text) => ({ type: 'summary_text', text }));
  const item = { type: 'reasoning', id: 'rs_0', summary, encrypted_content: 'sealed' };
  const content = [{ type: 'output_text', text: answer.join('') }];
  const message = { type: 'message', role: 'assistant', id: 'msg_1', content };
  return sends(
    { type: 'response.output_item.added', output_index: 0, item: { ...item, summary: [] } },
    ...part(0, 'Reading', ' it'),
    ...part(1, 'Writing it'),
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.output_item.added', output_index: 1, item: { ...message, content: [] } },
    ...answer.map((delta) => ({ type: 'response.output_text.delta', item_id: 'msg_1', output_index: 1, delta })),
    { type: 'response.output_item.done', output_index: 1, item: message },
    completed,
  );
}

/** Calls these tools in one message. `input` is JSON. */
export function calls(...made: readonly { readonly id: string; readonly name: string; readonly input: string }[]) {
  const items = made.map(({ id, name, input }, index) => ({
    type: 'response.output_item.done',
    output_index: index,
    item: { type: 'function_call', id: `fc_${id}`, call_id: id, name, arguments: input },
  }));
  return sends(...items, completed);
}

/** Begins an answer, then stops sending. */
export const responseStalls: ResponsesBehaviour = { kind: 'stalls' };

const refusing = (status: number, error: Readonly<Record<string, unknown>>, headers: ResponsesHeaders = {}) =>
  ({ kind: 'refuses', status, error, headers }) as const;

/** Returns the headers for the windows of a subscription; `resetsAt` in seconds since the epoch. */
function fiveHoursUsed(percent: number, resetsAt: number): ResponsesHeaders {
  return {
    'x-codex-primary-used-percent': String(percent),
    'x-codex-primary-window-minutes': '300',
    'x-codex-primary-reset-at': String(resetsAt),
  };
}

/** Errors of the real API. */
export const responseRefusals = {
  unauthorized: refusing(401, { type: 'invalid_request_error', code: 'invalid_api_key', message: 'Incorrect API key' }),
  rateLimited: refusing(429, { type: 'requests', code: 'rate_limit_exceeded', message: 'Rate limit reached' }),
  outOfQuota: refusing(429, { type: 'insufficient_quota', code: 'insufficient_quota', message: 'You exceeded it' }),
  promptTooLong: refusing(400, { code: 'context_length_exceeded', message: 'Your input exceeds the context window' }),
  modelUnknown: refusing(404, { code: 'model_not_found', message: 'The model does not exist' }),
  malformed: refusing(400, { type: 'invalid_request_error', message: 'Invalid schema for response_format' }),
  overloaded: refusing(503, { type: 'server_error', message: 'The server is overloaded' }),
  broken: refusing(500, { type: 'server_error', message: 'The server had an error' }),
} as const;

/** Returns the error of a used-up subscription; `resetsAt` in seconds since the epoch. */
export function usageLimit(resetsAt: number) {
  const error = { type: 'usage_limit_reached', message: 'The usage limit has been reached', plan_type: 'plus' };
  return refusing(429, { ...error, resets_at: resetsAt }, fiveHoursUsed(100, resetsAt));
}

/** Repeats the last user text, a few characters per delta. */
export function repeats({ body }: ResponsesRequest): ResponsesBehaviour {
  const last = body.input.findLast(({ role }) => role === 'user');
  const text = (last?.content ?? []).map((part) => part.text ?? '').join('');
  return responds(...(text.match(/.{1,7}/gsu) ?? ['']));
}

/** Returns the messages of a request with role and text, and its tools. */
export function messagesOf({ body }: ResponsesRequest): readonly string[] {
  const inputWithoutTools = body.input.filter(({ tools }) => tools?.length !== 0);
  return inputWithoutTools.map(({ type, role, content = [] }) => {
    const parts = content.map((part) => part.text ?? part.image_url ?? part.type);
    return `${role ?? type}: ${parts.join('|')}`;
  });
}

/** Stub of the Responses API on loopback. */
export class ResponsesApi extends StubApi {
  readonly requests: ResponsesRequest[] = [];
  /** Returns the treatment of each request; `index` counts from 0. Tests may replace it at any time. */
  behave: (request: ResponsesRequest, index: number) => ResponsesBehaviour = () => responds('Hello', ', wor', 'ld');

  override get url(): string {
    return `${super.url}/v1`;
  }

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') return void response.writeHead(404).end();
    const body = (await json(request)) as ResponsesBody;
    const received = { headers: request.headers, body, clientPort: request.socket.remotePort ?? 0 };
    const index = this.requests.push(received) - 1;
    await reply(response, this.behave(received, index));
  }
}

export async function startResponsesApi(port = 0): Promise<ResponsesApi> {
  return new ResponsesApi(await listeningServer(port));
}

async function reply(response: ServerResponse, behaviour: ResponsesBehaviour): Promise<void> {
  const headers = 'headers' in behaviour ? behaviour.headers : {};
  for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value);
  if (behaviour.kind === 'refuses') {
    response.writeHead(behaviour.status, { 'content-type': 'application/json' });
    return void response.end(JSON.stringify({ error: behaviour.error }));
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  send(response, { type: 'response.created', response: { id: 'resp_of_the_stub' } });
  if (behaviour.kind === 'stalls') return;
  if (behaviour.kind === 'says') {
    for (const [index, deltas] of behaviour.messages.entries()) await say(response, index, deltas, behaviour.pauseMs);
    send(response, completed);
  } else for (const event of behaviour.events) send(response, event);
  response.end();
}

export const completed: ResponsesEvent = {
  type: 'response.completed',
  response: {
    id: 'resp_of_the_stub',
    usage: {
      input_tokens: responseTokens.input,
      input_tokens_details: { cached_tokens: responseTokens.cached },
      output_tokens: responseTokens.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: responseTokens.input + responseTokens.output,
    },
  },
};

async function say(response: ServerResponse, index: number, deltas: readonly string[], pauseMs: number): Promise<void> {
  const item = { type: 'message', role: 'assistant', id: `msg_${index}`, content: [] as readonly unknown[] };
  send(response, { type: 'response.output_item.added', output_index: index, item });
  for (const delta of deltas) {
    if (pauseMs > 0) await sleep(pauseMs);
    if (response.destroyed) return;
    send(response, {
      type: 'response.output_text.delta',
      item_id: item.id,
      output_index: index,
      content_index: 0,
      delta,
    });
  }
  const content = [{ type: 'output_text', text: deltas.join('') }];
  send(response, { type: 'response.output_item.done', output_index: index, item: { ...item, content } });
}

function send(response: ServerResponse, event: ResponsesEvent): void {
  response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** Error in the stream, as in the real API. */
export const atCapacity = sends({
  type: 'response.failed',
  response: { id: 'resp_of_the_stub', error: { code: 'server_is_overloaded', message: 'The model is overloaded' } },
});
