import {
  messagesRequest,
  parseCountedMessages,
  parseMessages,
} from '../../../../src/features/anthropic/messages-request.js';
import { chatCompletionRequest, parseChat } from '../../../../src/features/openai/chat-request.js';
import { responsesRequest } from '../../../../src/features/openai/responses-input.js';
import { parseResponses } from '../../../../src/features/openai/responses-request.js';
import type { RelayError } from '../../../../src/shared/errors.js';
import { check } from '../../../../src/worker/http/body.js';
import { assistant, user } from '../../../support/doors/sdk-messages.js';

const hi = [user('Hi')];

const chat = (body: object) => parseChat(check({ model: 'm', messages: hi, ...body }, chatCompletionRequest));
const responses = (body: object) => parseResponses(check({ model: 'm', input: 'Hi', ...body }, responsesRequest));
const message = (body: object) => check({ model: 'm', messages: hi, ...body }, messagesRequest);
const messages = (body: object) => parseMessages(message(body));

const chatTool = (name: string) => ({ type: 'function', function: { name } });
const responsesTool = (name: string) => ({ type: 'function', name });

function faultOf(parse: () => unknown): string {
  try {
    parse();
  } catch (error) {
    return (error as RelayError).message;
  }
  return 'none';
}

it("The tool choice `any` means `required`, in both APIs of OpenAI's form", () => {
  const made = [
    chat({ tools: [chatTool('a')], tool_choice: 'any' }),
    responses({ tools: [responsesTool('a')], tool_choice: 'any' }),
  ];
  expect(made.map(({ job }) => job.offer?.choice)).toEqual(['required', 'required']);
});

describe('The tool choice allowed_tools', () => {
  const search = { type: 'web_search' };
  const choose = {
    chat: (mode: string, names: readonly string[]) => {
      const allowed_tools = { mode, tools: [...names.map(chatTool), search] };
      return chat({ tools: ['a', 'b', 'c'].map(chatTool), tool_choice: { type: 'allowed_tools', allowed_tools } }).job;
    },
    responses: (mode: string, names: readonly string[]) => {
      const tool_choice = { type: 'allowed_tools', mode, tools: [...names.map(responsesTool), search] };
      return responses({ tools: ['a', 'b', 'c'].map(responsesTool), tool_choice }).job;
    },
  };

  it.each(['chat', 'responses'] as const)('restricts the offer to these tools: %s', (door) => {
    for (const mode of ['auto', 'required']) {
      const { offer } = choose[door](mode, ['b', 'a']);
      expect([offer?.choice, offer?.tools.map(({ name }) => name)]).toEqual([mode, ['a', 'b']]);
    }
    expect(choose[door]('auto', []).offer).toMatchObject({ choice: 'none' });
    expect(faultOf(() => choose[door]('required', []))).toBe('tool_choice: must allow a tool of the client');
    expect(faultOf(() => choose[door]('auto', ['x']))).toBe('tool_choice: must allow only tools of this request');
  });
});

describe('An Anthropic client tool', () => {
  it.each([
    ['bash_20250124', 'bash', 'command'],
    ['text_editor_20250728', 'str_replace_based_edit_tool', 'old_str'],
    ['memory_20250818', 'memory', 'old_path'],
  ])('is offered as a tool with a schema: %s', (type, name, property) => {
    const { job, droppedTools, ignored } = messages({ tools: [{ type, name }] });
    expect(job.offer?.tools).toMatchObject([{ name, schema: expect.stringContaining(`"${property}"`) }]);
    expect([droppedTools, ignored]).toEqual([[], []]);
  });
});

describe('A token count', () => {
  it.each<[string, object[]]>([
    ['an answer at the end', [...hi, assistant('Hello')]],
    ['an open call', [...hi, assistant([{ type: 'tool_use', id: 'a', name: 'b', input: {} }])]],
    ['a result without a call', [user([{ type: 'tool_result', tool_use_id: 'a', content: 'x' }])]],
  ])('accepts a conversation with %s', (_, said) => {
    expect(() => parseCountedMessages(message({ messages: said }))).not.toThrow();
    expect(faultOf(() => messages({ messages: said, tools: [{ name: 'b' }] }))).toContain('messages');
  });
});

describe('A fault in a request', () => {
  it.each<[string, () => unknown, string]>([
    ['a list of texts', () => chat({ messages: ['Hi'] }), 'messages.0: must be an object'],
    ['a text', () => messages({ thinking: 'hard' }), 'thinking: must be an object'],
    ['a number', () => messages({ metadata: 5 }), 'metadata: must be an object'],
    ['an odd mode', () => messages({ tools: [{ name: 5 }] }), 'tools.0.name: must be a string'],
    ['a text as options', () => chat({ stream_options: 'yes' }), 'stream_options: must be an object'],
    ['null', () => responses({ input: [null] }), 'input'],
  ])('is explained in the terms of the service: %s', (_, parse, words) => {
    const fault = faultOf(parse);
    expect(fault).toContain(words);
    expect(fault).not.toMatch(/invalid|expected|received|zod/i);
  });
});

const chatCall = (name: string) => ({ id: 'call_0', type: 'function', function: { name, arguments: '{}' } });
const chatResult = (name: string) => ({ role: 'tool', tool_call_id: 'call_0', content: `of ${name}` });

describe('A conversation with repeated call ids, without tools', () => {
  it('has each result under the name of its call', () => {
    const round = (name: string) => [assistant(null, { tool_calls: [chatCall(name)] }), chatResult(name)];
    const { history, text } = chat({ messages: [...hi, ...round('look'), ...round('find')] }).job;
    expect([history?.at(2)?.text, text]).toEqual(['Result of look:\n\nof look', 'Result of find:\n\nof find']);
  });
});

describe('A message whose calls share one id', () => {
  const names = ['look', 'find'];
  const ids = ['call_0', 'call_0_2'];
  const calls = names.map((name) => ({ type: 'tool_use', id: 'call_0', name, input: {} }));
  const results = names.map((name) => ({ type: 'tool_result', tool_use_id: 'call_0', content: `of ${name}` }));
  const messagesBody = { messages: [...hi, assistant(calls), user(results)] };
  const chatBody = {
    messages: [...hi, assistant(null, { tool_calls: names.map(chatCall) }), ...names.map(chatResult)],
  };
  const responsesBody = {
    input: [
      ...hi,
      ...names.map((name) => ({ type: 'function_call', call_id: 'call_0', name, arguments: '{}' })),
      ...names.map((name) => ({ type: 'function_call_output', call_id: 'call_0', output: `of ${name}` })),
    ],
  };

  it.each([
    ['chat', () => chat({ ...chatBody, tools: names.map(chatTool) }).job, () => chat(chatBody).job],
    [
      'responses',
      () => responses({ ...responsesBody, tools: names.map(responsesTool) }).job,
      () => responses(responsesBody).job,
    ],
    [
      'messages',
      () => messages({ ...messagesBody, tools: names.map((name) => ({ name })) }).job,
      () => messages(messagesBody).job,
    ],
  ])(
    'has the first result for the first call, and without tools the name of its call for each result: %s',
    (_, parse, parseText) => {
      const { history, results } = parse();
      const calls = history?.at(-1)?.calls ?? [];
      expect(calls.map(({ id, name }) => [id, name])).toEqual(ids.map((id, at) => [id, names[at]]));
      expect(results?.map(({ id, text }) => [id, text])).toEqual(ids.map((id, at) => [id, `of ${names[at]}`]));
      expect(parseText().text).toBe('Result of look:\n\nof look\n\nResult of find:\n\nof find');
    },
  );

  it('has the first result for the first call if calls have no ids', () => {
    const made = ['a', 'b'].map((q) => ({ function_call: { name: 'look', arguments: JSON.stringify({ q }) } }));
    const calls = made.map((call) => assistant(null, call));
    const results = ['of a', 'of b'].map((content) => ({ role: 'function', name: 'look', content }));
    const { job } = chat({ messages: [...hi, ...calls, ...results], functions: [{ name: 'look' }] });
    const called = job.history?.at(-1)?.calls?.map(({ id, input }) => [id, input]);
    expect(called).toEqual(job.results?.map(({ id, text }) => [id, `{"q":"${text.slice(3)}"}`]));
  });
});
