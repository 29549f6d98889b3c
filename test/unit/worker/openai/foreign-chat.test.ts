import { chatCompletionRequest, parseChat } from '../../../../src/worker/openai/chat-request.js';
import { chatBody } from '../../../../src/worker/openai/foreign-chat.js';

const user = { role: 'user', content: 'Hi' };
const schema = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { type: 'function', function: { name: 'weather', description: 'Tells it.', parameters: schema } };
const ulm = '{"city":"Ulm"}';
const called = { id: 'call_a', type: 'function', function: { name: 'weather', arguments: ulm } };
const round = [
  user,
  { role: 'assistant', content: null, tool_calls: [called] },
  { role: 'tool', tool_call_id: 'call_a', content: 'Rain' },
];
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const shown = { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } };
const text = { type: 'text', text: 'Hi' };
const note = `data:text/plain;base64,${Buffer.from('A note.').toString('base64')}`;

type Shape = [name: string, foreign: object, native: object];

const responses: readonly Shape[] = [
  [
    'a text',
    { input: 'Hi', instructions: 'Be short.' },
    { messages: [{ role: 'system', content: 'Be short.' }, user] },
  ],
  [
    'messages as items',
    {
      input: [
        {
          type: 'message',
          id: 'msg_1',
          status: 'completed',
          role: 'user',
          content: [{ type: 'input_text', text: 'Hi' }],
        },
      ],
    },
    { messages: [{ role: 'user', content: [text] }] },
  ],
  [
    'settings',
    {
      ...{ input: 'Hi', max_output_tokens: 9, reasoning: { effort: 'high' } },
      text: { format: { type: 'json_schema', name: 'a', schema } },
    },
    {
      ...{ messages: [user], max_completion_tokens: 9, reasoning_effort: 'high' },
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
    },
  ],
  [
    'a tool round',
    {
      input: [
        user,
        { type: 'reasoning', summary: [] },
        { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: ulm },
        { type: 'function_call_output', call_id: 'call_a', output: 'Rain' },
      ],
      tools: [{ type: 'function', name: 'weather', description: 'Tells it.', parameters: schema }],
      tool_choice: { type: 'function', name: 'weather' },
    },
    { messages: round, tools: [weather], tool_choice: { type: 'function', function: { name: 'weather' } } },
  ],
  [
    'an image and a file',
    {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_image', image_url: shown.image_url.url },
            { type: 'input_file', filename: 'a.txt', file_data: note },
          ],
        },
      ],
    },
    { messages: [{ role: 'user', content: [shown, { type: 'file', file: { file_data: note, filename: 'a.txt' } }] }] },
  ],
  [
    'allowed and custom tools',
    {
      input: 'Hi',
      tools: [
        { type: 'function', name: 'weather', description: 'Tells it.', parameters: schema },
        { type: 'custom', name: 'shell', description: 'Runs it.' },
      ],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'custom', name: 'shell' }] },
    },
    {
      messages: [user],
      tools: [weather, { type: 'custom', custom: { name: 'shell', description: 'Runs it.' } }],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'custom', custom: { name: 'shell' } }] },
      },
    },
  ],
];

const tools = [{ name: 'weather', description: 'Tells it.', input_schema: schema }];
const messages: readonly Shape[] = [
  [
    'system and stop sequences',
    { system: [{ type: 'text', text: 'Be short.' }], messages: [user], stop_sequences: ['x'] },
    { messages: [{ role: 'system', content: 'Be short.' }, user], stop: ['x'] },
  ],
  [
    'a tool round',
    {
      messages: [
        user,
        {
          role: 'assistant',
          content: [text, { type: 'tool_use', id: 'call_a', name: 'weather', input: { city: 'Ulm' } }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_a', content: 'Rain' }, text] },
      ],
      ...{ tools, tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    },
    {
      messages: [
        user,
        { role: 'assistant', content: 'Hi', tool_calls: [called] },
        { role: 'tool', tool_call_id: 'call_a', content: 'Rain' },
        user,
      ],
      ...{ tools: [weather], tool_choice: 'required', parallel_tool_calls: false },
    },
  ],
  [
    'a named tool',
    { messages: [user], tools, tool_choice: { type: 'tool', name: 'weather' } },
    { messages: [user], tools: [weather], tool_choice: { type: 'function', function: { name: 'weather' } } },
  ],
  [
    'an image and a document',
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
            { type: 'document', title: 'a.txt', source: { type: 'text', media_type: 'text/plain', data: 'A note.' } },
          ],
        },
      ],
    },
    { messages: [{ role: 'user', content: [shown, { type: 'file', file: { file_data: note, filename: 'a.txt' } }] }] },
  ],
];

/** Returns the request, without what it lists as ignored. */
function read(body: object) {
  return { ...parseChat(chatBody.parse(body)), ignored: [] };
}

describe('A chat completion', () => {
  it.each(responses)('may have the shape of the Responses API: %s', (_, foreign, native) => {
    expect(read(foreign)).toEqual(read(native));
  });

  it.each(messages)("may have the shape of Anthropic's API: %s", (_, foreign, native) => {
    expect(read(foreign)).toEqual(read(native));
  });

  it('in its own shape is the same as before', () => {
    const body = { messages: round, tools: [weather], stop: 'x', reasoning_effort: 'low', odd: 1 };
    expect(parseChat(chatBody.parse(body))).toEqual(parseChat(chatCompletionRequest.parse(body)));
  });

  it('keeps the error of a result', () => {
    const failed = { type: 'tool_result', tool_use_id: 'call_a', content: 'No', is_error: true };
    const { job, ignored } = parseChat(
      chatBody.parse({ messages: [...round.slice(0, 2), { role: 'user', content: [failed] }], tools }),
    );
    expect([job.results, ignored]).toEqual([[{ id: 'call_a', text: 'No', isError: true }], []]);
  });

  it.each<[string, object]>([
    ['an earlier response', { input: 'Hi', previous_response_id: 'resp_1' }],
    ['an item that is not known', { input: [user, { type: 'item_reference', id: 'msg_1' }] }],
    ['no message', {}],
    ['no list', { messages: 'Hi' }],
    ['no object', []],
    ['a number', { messages: [1] }],
    [
      'an image by its id',
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: 'a' } }] }] },
    ],
  ])('is refused as before if it has %s', (_, body) => {
    expect(() => parseChat(chatBody.parse(body))).toThrow();
  });
});

describe('A call', () => {
  const input = { city: 'Ulm' };
  const listOf = (ids: readonly unknown[], results: readonly unknown[]) => ({
    messages: [
      user,
      { role: 'assistant', tool_calls: ids.map((id) => ({ id, function: { name: 'weather', arguments: input } })) },
      ...results.map((tool_call_id, at) => ({ role: 'tool', tool_call_id, content: `Result ${at}` })),
    ],
  });

  it.each<[string, readonly unknown[], readonly unknown[]]>([
    ['null', [null], [null]],
    ['empty', ['', ''], ['', '']],
    ['missing', [undefined, undefined], [undefined, undefined]],
    ['missing in the results', ['a', 'b'], [null, null]],
    ['missing in the calls', [null, null], ['x', 'y']],
    ['missing beside others', ['a', null, 'c'], ['c', null, 'a']],
  ])('is paired with its result by the place if its id is %s', (_, ids, results) => {
    const { job } = parseChat(chatBody.parse({ ...listOf(ids, results), tools: [weather] }));
    const { calls = [] } = job.history?.at(-1) ?? {};
    expect(calls.map((call) => call.input)).toEqual(ids.map(() => ulm));
    const paired = calls.map(({ id }) => job.results?.find((result) => result.id === id)?.text);
    const expected = ids.map((id, at) => {
      const named = id ? results.indexOf(id) : -1;
      return `Result ${named < 0 ? at : named}`;
    });
    expect(paired).toEqual(expected);
  });

  it('without a result is still refused', () => {
    expect(() => parseChat(chatBody.parse({ ...listOf([null, null], [null]), tools: [weather] }))).toThrow(/result/);
    expect(() => parseChat(chatBody.parse({ ...listOf([null], [null, null]), tools: [weather] }))).toThrow(/id|call/);
  });

  it.each([null, undefined, {}])('may have %p as its arguments', (args) => {
    const call = { id: 'a', function: { name: 'weather', arguments: args } };
    const sent = [user, { role: 'assistant', tool_calls: [call] }, { role: 'tool', tool_call_id: 'a', content: 'x' }];
    const { job } = parseChat(chatBody.parse({ messages: sent, tools: [weather] }));
    expect(job.history?.at(-1)?.calls).toEqual([{ id: 'a', name: 'weather', input: '{}' }]);
  });
});
