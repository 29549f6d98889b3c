/** Answer in a form that is common to all compatibility APIs. */
export interface DoorAnswer {
  readonly status: number;
  readonly text: string;
  /** Inputs of the calls, as JSON. */
  readonly calls: readonly string[];
  /** Finish reason in the terms of the API; `error` for a failure within a stream. */
  readonly finish: string;
  readonly outputTokens: number;
  /** Category of a refusal. */
  readonly category?: string | null;
}

type Json = Readonly<Record<string, unknown>>;

/** Requests to one API with the tool `note`, and parsers of its answers. */
export interface Door {
  readonly path: string;
  readonly finishes: {
    readonly whole: string;
    readonly stop: string;
    readonly calls: string;
    readonly length: string;
    readonly refusal: string;
  };
  body(prompt: string): object;
  plain(body: never): Omit<DoorAnswer, 'status'>;
  /** Parses the events or lines of a stream. */
  streamed(events: never): Omit<DoorAnswer, 'status'>;
}

const schema = { type: 'object', properties: { who: { type: 'string' } } };
const model = 'claude-sonnet-5';
const failure = { text: '', calls: [], finish: 'error', outputTokens: 0 };

interface ChatPlain {
  readonly choices: readonly [
    {
      readonly finish_reason: string;
      readonly message: { readonly content: string | null; readonly tool_calls?: readonly ChatCall[] };
    },
  ];
  readonly usage: { readonly completion_tokens: number };
}
interface ChatCall {
  readonly index?: number;
  readonly function: { readonly arguments: string };
}
interface ChatChunk {
  readonly error?: object;
  readonly choices?: readonly {
    readonly finish_reason: string | null;
    readonly delta: { readonly content?: string | null; readonly tool_calls?: readonly ChatCall[] };
  }[];
  readonly usage?: { readonly completion_tokens: number };
}

const chat: Door = {
  path: '/v1/chat/completions',
  finishes: { whole: 'stop', stop: 'stop', calls: 'tool_calls', length: 'length', refusal: 'content_filter' },
  body: (content) => ({
    model,
    messages: [{ role: 'user', content }],
    tools: [{ type: 'function', function: { name: 'note', parameters: schema } }],
    stream_options: { include_usage: true },
  }),
  plain({ choices: [{ message, finish_reason: finish }], usage }: ChatPlain) {
    const calls = (message.tool_calls ?? []).map((call) => call.function.arguments);
    return { text: message.content ?? '', calls, finish, outputTokens: usage.completion_tokens };
  },
  streamed(chunks: readonly ChatChunk[]) {
    if (chunks.some(({ error }) => error !== undefined)) return failure;
    const choices = chunks.flatMap((chunk) => chunk.choices ?? []);
    const calls: string[] = [];
    for (const { index = 0, function: made } of choices.flatMap(({ delta }) => delta.tool_calls ?? []))
      calls[index] = (calls[index] ?? '') + made.arguments;
    const text = choices.map(({ delta }) => delta.content ?? '').join('');
    const finish = choices.find((choice) => choice.finish_reason !== null)?.finish_reason ?? 'none';
    return { text, calls, finish, outputTokens: chunks.at(-1)?.usage?.completion_tokens ?? -1 };
  },
};

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly input?: unknown;
}
interface MessagePlain {
  readonly content: readonly Block[];
  readonly stop_reason: string;
  readonly stop_details?: { readonly category: string | null } | null;
  readonly usage: { readonly output_tokens: number };
}
interface MessageEvent {
  readonly type: string;
  readonly content_block?: Block;
  readonly delta?: Pick<MessagePlain, 'stop_reason' | 'stop_details'> & { text?: string; partial_json?: string };
  readonly usage?: { readonly output_tokens: number };
}

const messages: Door = {
  path: '/v1/messages',
  finishes: { whole: 'end_turn', stop: 'stop_sequence', calls: 'tool_use', length: 'max_tokens', refusal: 'refusal' },
  body: (content) => ({
    model,
    max_tokens: 500,
    messages: [{ role: 'user', content }],
    tools: [{ name: 'note', input_schema: schema }],
  }),
  plain({ content, stop_reason: finish, stop_details: details, usage }: MessagePlain) {
    const calls = content.filter(({ type }) => type === 'tool_use').map(({ input }) => JSON.stringify(input));
    const category = details && { category: details.category };
    return { text: textIn(content), calls, finish, outputTokens: usage.output_tokens, ...category };
  },
  streamed(events: readonly MessageEvent[]) {
    const end = events.find(({ type }) => type === 'message_delta');
    if (end === undefined) return failure;
    const text = events.map(({ delta }) => delta?.text ?? '').join('');
    const calls: string[] = [];
    for (const { content_block: block, delta } of events) {
      if (block?.type === 'tool_use') calls.push('');
      if (delta?.partial_json !== undefined) calls.push((calls.pop() ?? '') + delta.partial_json);
    }
    const details = end.delta?.stop_details;
    const category = details && { category: details.category };
    const finish = end.delta?.stop_reason ?? 'none';
    return { text, calls, finish, outputTokens: end.usage?.output_tokens ?? -1, ...category };
  },
};

interface ResponsePlain {
  readonly status: string;
  readonly incomplete_details: { readonly reason: string } | null;
  readonly output: readonly { readonly content?: readonly Block[]; readonly arguments?: string }[];
  readonly usage: { readonly output_tokens: number };
}

function responseAnswer({ status, incomplete_details: details, output, usage }: ResponsePlain) {
  const calls = output.flatMap(({ arguments: input }) => (input === undefined ? [] : [input]));
  const text = output.map(({ content = [] }) => textIn(content)).join('');
  return { text, calls, finish: details?.reason ?? status, outputTokens: usage.output_tokens };
}

const ends = ['response.completed', 'response.incomplete'];

const responses: Door = {
  path: '/v1/responses',
  finishes: {
    ...{ whole: 'completed', stop: 'completed', calls: 'completed' },
    ...{ length: 'max_output_tokens', refusal: 'content_filter' },
  },
  body: (input) => ({ model, input, tools: [{ type: 'function', name: 'note', parameters: schema }] }),
  plain: responseAnswer,
  /** Expects that the deltas add up to the text in the last event. */
  streamed(events: readonly { readonly type: string; readonly response?: ResponsePlain; readonly delta?: string }[]) {
    const end = events.find(({ type }) => ends.includes(type));
    if (end?.response === undefined) return failure;
    const sent = (type: string) => events.map((event) => (event.type === type ? event.delta : '')).join('');
    const answer = responseAnswer(end.response);
    const isSame = sent('response.output_text.delta') === answer.text;
    const areSame = sent('response.function_call_arguments.delta') === answer.calls.join('');
    return isSame && areSame ? answer : { ...answer, finish: 'differs from the deltas' };
  },
};

interface OllamaLine {
  readonly error?: string;
  readonly done?: boolean;
  readonly done_reason?: string;
  readonly eval_count?: number;
  readonly message?: {
    readonly content: string;
    readonly tool_calls?: readonly { readonly function: { readonly arguments: Json } }[];
  };
}

function ollamaAnswer(lines: readonly OllamaLine[]) {
  const end = lines.find(({ done }) => done);
  if (end === undefined) return failure;
  const text = lines.map(({ message }) => message?.content ?? '').join('');
  const made = lines.flatMap(({ message }) => message?.tool_calls ?? []);
  const calls = made.map((call) => JSON.stringify(call.function.arguments));
  return { text, calls, finish: end.done_reason ?? 'none', outputTokens: end.eval_count ?? -1 };
}

const ollama: Door = {
  path: '/api/chat',
  finishes: { whole: 'stop', stop: 'stop', calls: 'stop', length: 'length', refusal: 'refusal' },
  body: (content) => ({
    model,
    messages: [{ role: 'user', content }],
    tools: [{ type: 'function', function: { name: 'note', description: '', parameters: schema } }],
  }),
  plain: (line: OllamaLine) => ollamaAnswer([line]),
  streamed: ollamaAnswer,
};

export const doors = { chat, messages, responses, ollama } as const;

function textIn(content: readonly Block[]): string {
  return content.map(({ text = '' }) => text).join('');
}

/** Sends a prompt through one API, and reads the text of the response. */
export async function sentByDoor(url: string, door: Door, prompt: string, stream: boolean, more: object = {}) {
  const response = await fetch(url + door.path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...door.body(prompt), stream, ...more }),
  });
  return { status: response.status, text: await response.text() };
}

/** Sends a prompt through one API. */
export async function askDoor(url: string, door: Door, prompt: string, stream: boolean, more: object = {}) {
  const { status, text } = await sentByDoor(url, door, prompt, stream, more);
  if (status !== 200) return { status, ...failure, text };
  if (!stream) return { status, ...door.plain(JSON.parse(text) as never) };
  return { status, ...door.streamed(eventsIn(text) as never) };
}

/** The events, or lines, of a stream. */
export function eventsIn(text: string): object[] {
  const lines = text.split('\n').map((line) => line.replace(/^data: /, '').trim());
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as object);
}
