import { responsesBody } from '../../../../src/features/openai/foreign-responses.js';
import { responsesRequest } from '../../../../src/features/openai/responses-input.js';
import { parseResponses } from '../../../../src/features/openai/responses-request.js';
import { png } from '../../../support/doors/sdk-messages.js';

const user = { role: 'user', content: 'Hi' };
const schema = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { type: 'function', name: 'weather', description: 'Tells it.', parameters: schema };
const inChat = { type: 'function', function: { name: 'weather', description: 'Tells it.', parameters: schema } };
const ulm = '{"city":"Ulm"}';
const url = `data:image/png;base64,${png}`;
const note = `data:text/plain;base64,${Buffer.from('A note.').toString('base64')}`;
const call = { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: ulm };
const output = { type: 'function_call_output', call_id: 'call_a', output: 'Rain' };
const calling = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'call_a', type: 'function', function: { name: 'weather', arguments: ulm } }],
};

const bare = { type: 'object', description: '', required: [], additionalProperties: false };

const shapes: readonly [name: string, foreign: object, native: object][] = [
  [
    'messages',
    { messages: [{ role: 'system', content: 'Be short.' }, user] },
    { input: [{ role: 'system', content: 'Be short.' }, user] },
  ],
  [
    'a tool round',
    {
      messages: [user, calling, { role: 'tool', tool_call_id: 'call_a', content: 'Rain' }],
      ...{ tools: [inChat], tool_choice: { type: 'function', function: { name: 'weather' } } },
    },
    { input: [user, call, output], tools: [weather], tool_choice: { type: 'function', name: 'weather' } },
  ],
  [
    'messages as its input',
    {
      input: [user, { ...calling, content: 'So.' }, { role: 'tool', tool_call_id: 'call_a', content: 'Rain' }],
      tools: [inChat],
    },
    { input: [user, { role: 'assistant', content: 'So.' }, call, output], tools: [weather] },
  ],
  [
    'the older call of a function',
    {
      messages: [
        user,
        { role: 'assistant', content: null, function_call: { name: 'weather', arguments: ulm } },
        { role: 'function', name: 'weather', content: 'Rain' },
      ],
      tools: [inChat],
    },
    { input: [user, { ...call, call_id: 'weather' }, { ...output, call_id: 'weather' }], tools: [weather] },
  ],
  [
    "Anthropic's blocks and tools",
    {
      input: [
        user,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_a', name: 'weather', input: { city: 'Ulm' } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_a', content: 'Rain' }] },
      ],
      tools: [{ name: 'weather', description: 'Tells it.', input_schema: schema }],
      tool_choice: { type: 'any' },
    },
    { input: [user, call, output], tools: [weather], tool_choice: 'required' },
  ],
  [
    'images and files',
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'input_image', image_url: { url } },
            { type: 'image_url', image_url: { url, detail: 'low' } },
            { type: 'file', file: { file_data: note, filename: 'a.txt' } },
          ],
        },
      ],
    },
    {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'See' },
            { type: 'input_image', image_url: url },
            { type: 'input_image', image_url: url, detail: 'low' },
            { type: 'input_file', file_data: note, filename: 'a.txt' },
          ],
        },
      ],
    },
  ],
  [
    'settings',
    {
      ...{ messages: [user], max_completion_tokens: 9, reasoning_effort: 'high' },
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
    },
    {
      ...{ input: [user], max_output_tokens: 9, reasoning: { effort: 'high' } },
      text: { format: { type: 'json_schema', name: 'a', schema } },
    },
  ],
  [
    'custom and allowed tools',
    {
      messages: [user],
      tools: [inChat, { type: 'custom', custom: { name: 'shell' } }],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'custom', custom: { name: 'shell' } }] },
      },
    },
    {
      input: [user],
      tools: [weather, { type: 'custom', name: 'shell' }],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'custom', name: 'shell' }] },
    },
  ],
  [
    'a shell',
    {
      input: [
        user,
        { type: 'local_shell_call', call_id: 'call_a', action: { command: ['ls'] } },
        { type: 'function_call_output', call_id: 'call_a', output: 'a.txt' },
      ],
      tools: [weather],
    },
    {
      input: [
        user,
        { type: 'function_call', call_id: 'call_a', name: 'local_shell', arguments: '{"command":["ls"]}' },
        { ...output, output: 'a.txt' },
      ],
      tools: [weather],
    },
  ],
  [
    'empty texts for no choice',
    { input: 'Hi', tool_choice: '', previous_response_id: '', conversation: '' },
    { input: 'Hi' },
  ],
  [
    'an empty list for an empty object, as ellmer and PHP write it',
    { input: 'Hi', tools: [{ type: 'function', name: 'now', strict: true, parameters: { ...bare, properties: [] } }] },
    { input: 'Hi', tools: [{ type: 'function', name: 'now', strict: true, parameters: { ...bare, properties: {} } }] },
  ],
  [
    'settings of a chat completion beside its own input',
    { input: 'Hi', max_tokens: 9, reasoning_effort: 'low' },
    { input: 'Hi', max_output_tokens: 9, reasoning: { effort: 'low' } },
  ],
  ['0 for no limit', { input: 'Hi', max_output_tokens: 0 }, { input: 'Hi' }],
];

/** Returns the request, without what it lists as ignored. */
function read(body: object) {
  return { ...parseResponses(responsesBody.parse(body)), ignored: [] };
}

describe('A request for a response', () => {
  it.each(shapes)('may have other shapes: %s', (_, foreign, native) => {
    expect(read(foreign)).toEqual(read(native));
  });

  it('in its own shape is the same as before', () => {
    const body = { input: [user, call, output], tools: [weather], tool_choice: 'auto', odd: 1, messages: 'x' };
    expect(parseResponses(responsesBody.parse(body))).toEqual(parseResponses(responsesRequest.parse(body)));
  });

  it('reads a function in a function in a function once', () => {
    let copies = 0;
    let tool: object = { name: 'weather', parameters: schema };
    for (let depth = 0; depth < 50; depth++)
      tool = {
        function: tool,
        get more() {
          copies++;
          return 1;
        },
      };
    responsesBody.safeParse({ input: 'Hi', tools: [tool] });
    expect(copies).toBeLessThan(10);
  });

  it.each<[string, object, object, string[]]>([
    [
      'a format beside other settings of the text',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } }, text: { verbosity: 'low' } },
      { text: { verbosity: 'low', format: { type: 'json_schema', name: 'a', schema } } },
      [],
    ],
    [
      'an effort beside other settings',
      { reasoning_effort: 'high', reasoning: { summary: 'auto' } },
      { reasoning: { effort: 'high', summary: 'auto' } },
      [],
    ],
    [
      'settings that are null',
      { reasoning_effort: 'high', reasoning: null, text: null, max_tokens: 9, max_output_tokens: null },
      { reasoning: { effort: 'high' }, max_output_tokens: 9 },
      [],
    ],
    [
      'settings of both APIs',
      { reasoning_effort: 'high', reasoning: { effort: 'low' }, max_tokens: 9, max_output_tokens: 5 },
      { reasoning: { effort: 'low' }, max_output_tokens: 5 },
      ['max_tokens', 'reasoning_effort'],
    ],
    ['a format in a word', { response_format: 'json' }, {}, ['response_format']],
  ])('loses none of the settings in silence: %s', (_, sent, native, lost) => {
    const foreign = parseResponses(responsesBody.parse({ input: 'Hi', ...sent }));
    const own = parseResponses(responsesRequest.parse({ input: 'Hi', ...native }));
    expect(foreign).toEqual({ ...own, ignored: expect.anything() });
    expect(foreign.ignored.filter((name) => !own.ignored.includes(name)).toSorted()).toEqual(lost);
  });

  it('does not lose that a result is an error', () => {
    const failed = { type: 'tool_result', tool_use_id: 'call_a', content: 'No', is_error: true };
    const body = { input: [user, calling, { role: 'user', content: [failed] }], tools: [inChat] };
    expect(parseResponses(responsesBody.parse(body)).ignored).toContain('input.is_error');
  });

  it.each<[string, object]>([
    ['no input', {}],
    ['messages that are no list', { messages: 'Hi' }],
    ['a tool without a name', { messages: [user], tools: [{ type: 'function', function: {} }] }],
    ['a choice of an unknown kind', { messages: [user], tools: [inChat], tool_choice: { type: 'odd' } }],
    ['a call without a result', { messages: [user, calling, user], tools: [inChat] }],
  ])('is refused if it has %s', (_, body) => {
    expect(() => read(body)).toThrow();
  });
});
