import { chatCompletionRequest, chatFiles, parseChat } from '../../../../src/features/openai/chat-request.js';
import { chatBody } from '../../../../src/features/openai/foreign-chat.js';

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
    'settings beside messages',
    { messages: [user], instructions: 'Be short.', max_output_tokens: 9, reasoning: { effort: 'high', exclude: true } },
    {
      messages: [{ role: 'system', content: 'Be short.' }, user],
      ...{ max_completion_tokens: 9, reasoning_effort: 'high' },
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
            { type: 'input_image', image_url: shown.image_url },
            { type: 'input_file', filename: 'a.txt', file_data: note },
          ],
        },
      ],
    },
    {
      messages: [
        { role: 'user', content: [shown, shown, { type: 'file', file: { file_data: note, filename: 'a.txt' } }] },
      ],
    },
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

const paired = (name: string, args: object, content: unknown) => [
  user,
  { role: 'assistant', tool_calls: [{ id: 'call_a', function: { name, arguments: JSON.stringify(args) } }] },
  { role: 'tool', tool_call_id: 'call_a', content },
];

/** Items of calls that are not calls of functions, and the messages that the model gets. */
const foreignCalls: readonly [name: string, items: readonly object[], messages: readonly object[]][] = [
  [
    'of a shell',
    [
      { type: 'shell_call', id: 'sh_1', call_id: 'call_a', action: { commands: ['ls'] }, status: 'completed' },
      { type: 'shell_call_output', call_id: 'call_a', output: 'a.txt' },
    ],
    paired('shell', { commands: ['ls'] }, 'a.txt'),
  ],
  [
    'of a local shell, whose output is that of a function',
    [
      { type: 'local_shell_call', call_id: 'call_a', action: { type: 'exec', command: ['ls'] } },
      { type: 'function_call_output', call_id: 'call_a', output: 'a.txt' },
    ],
    paired('local_shell', { type: 'exec', command: ['ls'] }, 'a.txt'),
  ],
  [
    'of a patch without a text',
    [
      { type: 'apply_patch_call', call_id: 'call_a', operation: { type: 'delete_file', path: 'a' } },
      { type: 'apply_patch_call_output', call_id: 'call_a', status: 'failed' },
    ],
    paired('apply_patch', { type: 'delete_file', path: 'a' }, 'failed'),
  ],
  [
    'of a computer, with a picture',
    [
      { type: 'computer_call', call_id: 'call_a', action: { type: 'screenshot' } },
      {
        type: 'computer_call_output',
        call_id: 'call_a',
        output: { type: 'computer_screenshot', image_url: shown.image_url.url },
      },
    ],
    paired('computer', { type: 'screenshot' }, [shown]),
  ],
  [
    'that has its output in the same item',
    [{ type: 'mcp_call', id: 'call_a', name: 'find', arguments: '{}', output: 'Found.' }],
    paired('mcp', { name: 'find', arguments: '{}' }, 'Found.'),
  ],
  [
    'of a search for tools, which has found some',
    [
      { type: 'tool_search_call', call_id: 'call_a', arguments: { query: 'x' }, execution: 'client' },
      { type: 'tool_search_output', call_id: 'call_a', status: 'completed', tools: [{ name: 'x' }] },
    ],
    paired('tool_search', { arguments: { query: 'x' }, execution: 'client' }, '{"tools":[{"name":"x"}]}'),
  ],
  [
    'with an output of several commands',
    [
      { type: 'shell_call', call_id: 'call_a', action: { commands: ['ls'] } },
      { type: 'shell_call_output', call_id: 'call_a', output: [{ stdout: 'a.txt', outcome: { exit_code: 0 } }] },
    ],
    paired('shell', { commands: ['ls'] }, '[{"stdout":"a.txt","outcome":{"exit_code":0}}]'),
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

  it.each(foreignCalls)('keeps a call with its output: %s', (_, items, native) => {
    for (const tool of [{ tools: [weather] }, {}])
      expect(read({ input: [user, ...items], ...tool })).toEqual(read({ messages: native, ...tool }));
  });

  it.each<[string, object]>([
    ['a search', { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } }],
    ['a search in files', { type: 'file_search_call', id: 'fs_1', queries: ['x'], results: null }],
    ['a thought', { type: 'reasoning', summary: [], encrypted_content: 'x' }],
    ['an image', { type: 'image_generation_call', id: 'ig_1', result: 'iVBOR' }],
    ['a call without an output', { type: 'shell_call', call_id: 'call_a', action: { commands: ['ls'] } }],
    ['a shortened history', { type: 'compaction', encrypted_content: 'x' }],
    ['a list of tools', { type: 'mcp_list_tools', server_label: 'a', tools: [] }],
    ['a question about a call', { type: 'mcp_approval_request', id: 'a', name: 'find', arguments: '{}' }],
  ])('passes over an item without words: %s', (_, item) => {
    const answer = { role: 'assistant', content: 'Yes.' };
    expect(read({ input: [user, item, answer, user] })).toEqual(read({ messages: [user, answer, user] }));
  });

  it('lists the items that it passes over', () => {
    const { ignored } = parseChat(chatBody.parse({ input: [user, { type: 'web_search_call' }, user] }));
    expect(ignored).toEqual(['messages.content.web_search_call']);
  });

  it('refuses an output without words and without a call as the last message', () => {
    expect(() => read({ input: [user, { type: 'odd_output', call_id: 'a', output: {} }] })).toThrow('content.0.type');
  });

  it('keeps a result beside its call, although the output of a foreign call stands between them', () => {
    const other = { type: 'mcp_call', id: 'mcp_1', name: 'find', arguments: '{}', output: 'Found' };
    const call = { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: ulm };
    const output = { type: 'function_call_output', call_id: 'call_a', output: 'Rain' };
    expect(() => read({ input: [user, call, other, output], tools: [weather] })).not.toThrow();
    expect(() =>
      read({ input: [user, { type: 'web_search_call' }, { type: 'shell_call_output', output: 'x' }, user] }),
    ).not.toThrow();
  });

  it.each<[string, object, object, string[]]>([
    ['effort', { reasoning_effort: null, reasoning: { effort: 'high' } }, { reasoning_effort: 'high' }, []],
    [
      'both efforts',
      { reasoning_effort: 'low', reasoning: { effort: 'high' } },
      { reasoning_effort: 'low' },
      ['reasoning'],
    ],
    ['no effort', { reasoning_effort: 'low', reasoning: { effort: null } }, { reasoning_effort: 'low' }, []],
    [
      'format',
      { response_format: null, text: { format: { type: 'json_object' } } },
      { response_format: { type: 'json_object' } },
      [],
    ],
    ['limit', { max_completion_tokens: null, max_output_tokens: 9 }, { max_completion_tokens: 9 }, []],
    [
      'both limits',
      { max_completion_tokens: 5, max_output_tokens: 9 },
      { max_completion_tokens: 5 },
      ['max_output_tokens'],
    ],
  ])('loses none of the settings of the Responses API in silence: %s', (_, sent, native, lost) => {
    const foreign = parseChat(chatBody.parse({ messages: [user], ...sent }));
    expect(foreign).toEqual({
      ...parseChat(chatCompletionRequest.parse({ messages: [user], ...native })),
      ignored: lost,
    });
  });

  it('may offer tools in an item', () => {
    const item = { type: 'additional_tools', tools: [{ type: 'function', name: 'weather', parameters: schema }] };
    const more = { type: 'function', function: { name: 'weather', parameters: schema } };
    expect(read({ input: [item, user] })).toEqual(read({ messages: [user], tools: [more] }));
    const cook = { type: 'function', function: { name: 'cook' } };
    expect(read({ input: [item, user], tools: [cook] })).toEqual(read({ messages: [user], tools: [cook, more] }));
  });

  it.each(['web_search', 'web_search_preview', 'web_search_2025_08_26'])('may choose the tool %s', (type) => {
    const searching = { messages: [user], tools: [{ type: 'web_search' }] };
    expect(read({ ...searching, tool_choice: { type } })).toEqual(read(searching));
    expect(() => read({ messages: [user], tools: [weather], tool_choice: { type } })).toThrow('tool_choice');
  });

  it.each<[string, object]>([
    ['input_image', { type: 'input_image', file_id: 'file_a' }],
    ['image_url', { type: 'image_url', image_url: { file_id: 'file_a' } }],
    ['image', { type: 'image', source: { type: 'file', file_id: 'file_a' } }],
  ])('may refer to a file as an image: %s', (_, part) => {
    const { messages: sent } = chatBody.parse({ messages: [{ role: 'user', content: [part] }] });
    const reference = { file_id: 'file_a' };
    expect(sent).toEqual([{ role: 'user', content: [{ type: 'image_url', image_url: reference }] }]);
    expect(chatFiles.image_url?.referenceIn({ image_url: reference })).toEqual(reference);
  });

  it('may have an empty list for an empty object in its tools, as PHP and R write it', () => {
    const inputs = { type: 'object', properties: {} };
    const native = read({
      messages: [user],
      tools: [{ type: 'function', function: { name: 'now', parameters: inputs } }],
    });
    const listed = {
      messages: [user],
      tools: [{ type: 'function', function: { name: 'now', parameters: { ...inputs, properties: [] } } }],
    };
    expect(read(listed)).toEqual(native);
    const bare = read({ messages: [user], tools: [{ type: 'function', function: { name: 'now', parameters: [] } }] });
    expect(bare.job.offer?.tools).toEqual([{ name: 'now', description: '', schema: '{"type":"object"}' }]);
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

  it.each([null, undefined, {}, []])('may have %p as its arguments', (args) => {
    const call = { id: 'a', function: { name: 'weather', arguments: args } };
    const sent = [user, { role: 'assistant', tool_calls: [call] }, { role: 'tool', tool_call_id: 'a', content: 'x' }];
    const { job } = parseChat(chatBody.parse({ messages: sent, tools: [weather] }));
    expect(job.history?.at(-1)?.calls).toEqual([{ id: 'a', name: 'weather', input: '{}' }]);
  });
});
