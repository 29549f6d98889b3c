import type { Service } from '../service/service.js';
import {
  type Behaviour,
  conversationOf,
  endsFor,
  type MessagesRequest,
  says,
  saysAndCalls,
  saysAndGives,
  thinking,
} from './messages-api-stub.js';

/** Requests to all APIs with the options that models treat differently. */

/** A model of each family, and the name for the default model. */
export const gridModels = [
  ...['default', 'claude-opus-5-5', 'claude-fable-5-2', 'claude-sonnet-5-5', 'claude-haiku-5-5'],
  ...['claude-opus-5', 'claude-sonnet-5', 'claude-opus-4-8', 'claude-haiku-4-5'],
] as const;

/** Options of a request, in a form that is common to all APIs. */
interface Options {
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly tools?: true;
  readonly choice?: 'required' | 'note';
  readonly schema?: true;
  readonly effort?: 'low' | 'high';
}

type Json = Readonly<Record<string, unknown>>;

export interface GridDoor {
  readonly path: string;
  /** Options that the API has. */
  readonly has: ReadonlySet<keyof Options>;
  /** Whether the client stores the conversation. */
  readonly hasHistory: boolean;
  body(model: string, messages: readonly GridMessage[], options: Options): Json;
  /** Returns the id of the call in an answer; null if there is none. */
  callId(answer: Json): string | null;
}

/** Message of a conversation: a text, a call, or the result of a call. */
type GridMessage =
  | { readonly role: 'user' | 'assistant'; readonly text: string }
  | { readonly call: string }
  | { readonly result: string };

const input = { type: 'object', properties: { who: { type: 'string' } } };
const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], additionalProperties: false };
const everything = ['maxTokens', 'temperature', 'tools', 'choice', 'schema', 'effort'] as const;
const args = '{"who":"Ada"}';

/** Returns the fields whose values are set. */
function set(fields: Json): Json {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function chatMessage(message: GridMessage): Json {
  if ('call' in message) {
    const call = { id: message.call, type: 'function', function: { name: 'note', arguments: args } };
    return { role: 'assistant', content: null, tool_calls: [call] };
  }
  if ('result' in message) return { role: 'tool', tool_call_id: message.result, content: 'Noted.' };
  return { role: message.role, content: message.text };
}

const functionTool = { type: 'function', function: { name: 'note', parameters: input } };

const chat: GridDoor = {
  path: '/v1/chat/completions',
  has: new Set(everything),
  hasHistory: true,
  body: (model, messages, { maxTokens, temperature, tools, choice, schema: hasSchema, effort }) => {
    const named = choice === 'note' ? { type: 'function', function: { name: 'note' } } : choice;
    return {
      ...{ model, messages: messages.map(chatMessage) },
      ...set({ max_tokens: maxTokens, temperature, reasoning_effort: effort, tool_choice: named }),
      ...(tools && { tools: [functionTool] }),
      ...(hasSchema && { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } }),
    };
  },
  callId: (answer) => {
    const { choices } = answer as { readonly choices: readonly [{ message: { tool_calls?: [{ id: string }] } }] };
    return choices[0].message.tool_calls?.[0].id ?? null;
  },
};

function responseItem(message: GridMessage): Json {
  if ('call' in message) return { type: 'function_call', call_id: message.call, name: 'note', arguments: args };
  if ('result' in message) return { type: 'function_call_output', call_id: message.result, output: 'Noted.' };
  return { role: message.role, content: message.text };
}

const responses: GridDoor = {
  path: '/v1/responses',
  has: new Set(everything),
  hasHistory: true,
  body: (model, messages, { maxTokens, temperature, tools, choice, schema: hasSchema, effort }) => ({
    ...{ model, input: messages.map(responseItem), store: false },
    ...set({ max_output_tokens: maxTokens, temperature, reasoning: effort && { effort } }),
    ...set({ tool_choice: choice === 'note' ? { type: 'function', name: 'note' } : choice }),
    ...(tools && { tools: [{ type: 'function', name: 'note', parameters: input, strict: false }] }),
    ...(hasSchema && { text: { format: { type: 'json_schema', name: 'a', schema } } }),
  }),
  callId: (answer) => {
    const { output } = answer as { readonly output: readonly { readonly call_id?: string }[] };
    return output.find((item) => item.call_id !== undefined)?.call_id ?? null;
  },
};

function anthropicMessage(message: GridMessage): Json {
  if ('call' in message) {
    const use = { type: 'tool_use', id: message.call, name: 'note', input: { who: 'Ada' } };
    return { role: 'assistant', content: [use] };
  }
  if ('result' in message)
    return { role: 'user', content: [{ type: 'tool_result', tool_use_id: message.result, content: 'Noted.' }] };
  return { role: message.role, content: message.text };
}

const messages: GridDoor = {
  path: '/v1/messages',
  has: new Set(everything),
  hasHistory: true,
  body: (model, sent, { maxTokens = 4096, temperature, tools, choice, schema: hasSchema, effort }) => ({
    ...{ model, messages: sent.map(anthropicMessage), max_tokens: maxTokens },
    ...set({ temperature, tool_choice: choice && anthropicChoice(choice) }),
    ...(tools && { tools: [{ name: 'note', input_schema: input }] }),
    ...(effort && { output_config: { effort } }),
    ...(hasSchema && { output_config: { format: { type: 'json_schema', schema } } }),
  }),
  callId: (answer) => {
    const { content } = answer as { readonly content: readonly { readonly type: string; readonly id: string }[] };
    return content.find(({ type }) => type === 'tool_use')?.id ?? null;
  },
};

function anthropicChoice(choice: NonNullable<Options['choice']>) {
  return choice === 'required' ? { type: 'any' } : { type: 'tool', name: 'note' };
}

function ollamaMessage(message: GridMessage): Json {
  if ('call' in message)
    return { role: 'assistant', content: '', tool_calls: [{ function: { name: 'note', arguments: { who: 'Ada' } } }] };
  if ('result' in message) return { role: 'tool', tool_name: 'note', content: 'Noted.' };
  return { role: message.role, content: message.text };
}

const ollama: GridDoor = {
  path: '/api/chat',
  has: new Set(['maxTokens', 'temperature', 'tools', 'schema', 'effort']),
  hasHistory: true,
  body: (model, sent, { maxTokens, temperature, tools, schema: hasSchema, effort }) => ({
    ...{ model, messages: sent.map(ollamaMessage), stream: false },
    ...{ options: set({ num_predict: maxTokens, temperature }) },
    ...(tools && { tools: [functionTool] }),
    ...set({ think: effort, format: hasSchema && schema }),
  }),
  callId: (answer) => {
    const { message } = answer as { readonly message: { readonly tool_calls?: readonly object[] } };
    return message.tool_calls === undefined ? null : 'call';
  },
};

function native(path: string, field: string): GridDoor {
  return {
    path,
    has: new Set(['schema', 'effort']),
    hasHistory: false,
    body: (model, [question], { schema: hasSchema, effort }) => {
      const text = question !== undefined && 'text' in question ? question.text : '';
      return { model, [field]: text, ...set({ schema: hasSchema && schema, effort }) };
    },
    callId: () => null,
  };
}

export const gridDoors: readonly GridDoor[] = [
  ...[native('/ask', 'prompt'), native('/chat', 'message')],
  ...[chat, responses, messages, ollama],
];

interface GridCase {
  readonly name: string;
  readonly options: Options;
  readonly prompt?: string;
  /** Earlier messages, which the service sees for the first time. */
  readonly history?: readonly GridMessage[];
  /** Whether the client sends the result of the call that it gets. */
  readonly isRound?: true;
}

const earlier: readonly GridMessage[] = [
  { role: 'user', text: 'One.' },
  { role: 'assistant', text: 'An edited answer.' },
];

export const gridCases: readonly GridCase[] = [
  { name: 'a small limit', options: { maxTokens: 5 } },
  { name: 'a temperature beside a small limit', options: { temperature: 0.4, maxTokens: 1024 } },
  { name: 'a demanded call', options: { tools: true, choice: 'required' }, isRound: true },
  { name: 'a demanded call by name', options: { tools: true, choice: 'note', maxTokens: 300 } },
  { name: 'a schema', options: { schema: true } },
  { name: 'a schema that is cut', options: { schema: true, maxTokens: 5 }, prompt: 'Be cut.' },
  { name: 'a live tool round', options: { tools: true }, prompt: 'Call it.', isRound: true },
  {
    name: 'a tool round that is replayed',
    options: { tools: true },
    history: [...earlier, { role: 'user', text: 'Two.' }, { call: 'call_a' }],
  },
  { name: 'a history that was edited', options: {}, history: earlier },
  { name: 'a demanded call after such a history', options: { tools: true, choice: 'required' }, history: earlier },
  { name: 'an effort', options: { effort: 'high' } },
];

/** Returns the reaction of the model to a request of the grid. */
export function gridBehaviour(request: MessagesRequest): Behaviour {
  const { body } = request;
  const named = (name: string) => body.tools?.some((tool) => tool.name === name) === true;
  const texts = conversationOf(request).map(({ text }) => text);
  const asked = texts.findLast((text) => text.trim() !== '') ?? '';
  const last = body.messages.findLast(({ role }) => role === 'user')?.content ?? '';
  const hasResult = typeof last !== 'string' && last.some(({ type }) => type === 'tool_result');
  if (asked.includes('Be cut.')) return endsFor('max_tokens', says('{"a"'));
  const { type: choice } = (body.tool_choice ?? { type: 'auto' }) as { readonly type: string };
  const isDemanded = choice === 'any' || choice === 'tool' || asked.includes('You must answer');
  const call = saysAndCalls('', { name: 'note', input: { who: 'Ada' } });
  if (named('note') && !hasResult && (isDemanded || asked.includes('Call it.'))) return thoughtful(request, call);
  return named('StructuredOutput') && !hasResult ? saysAndGives('', { a: 1 }) : says('Fine.');
}

/** Models that think begin each tool round with a thought. */
function thoughtful({ body }: MessagesRequest, said: ReturnType<typeof says>): Behaviour {
  const { type } = (body.thinking ?? {}) as { readonly type?: string };
  return type === 'enabled' ? thinking(said) : said;
}

/** Answers of one request of the grid, and of the request with the result. */
export interface GridAnswer {
  readonly statuses: readonly number[];
  readonly hasCall: boolean;
}

/** Whether the API has all options of the case. */
export function isPossible(door: GridDoor, { options, history, isRound }: GridCase): boolean {
  const names = Object.keys(options) as (keyof Options)[];
  return names.every((name) => door.has.has(name)) && (door.hasHistory || (!history && !isRound));
}

export async function askGrid(
  service: Pick<Service, 'post'>,
  door: GridDoor,
  model: string,
  { options, prompt = 'Two.', history = [], isRound }: GridCase,
): Promise<GridAnswer> {
  const isReplay = history.some((message) => 'call' in message);
  const question: GridMessage = isReplay ? { result: 'call_a' } : { role: 'user', text: prompt };
  const sent = [...history, question];
  const first = await service.post(door.path, door.body(model, sent, options));
  const call = first.status === 200 ? door.callId(first.body) : null;
  if (!isRound || call === null) return { statuses: [first.status], hasCall: call !== null };
  const { choice: _, ...later } = options;
  const round = [...sent, { call }, { result: call }];
  const second = await service.post(door.path, door.body(model, round, later));
  return { statuses: [first.status, second.status], hasCall: true };
}
