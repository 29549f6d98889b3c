import { messagesBody } from '../../../../src/features/anthropic/foreign-messages.js';
import { messagesRequest, parseMessages } from '../../../../src/features/anthropic/messages-request.js';
import { png } from '../../../support/doors/sdk-messages.js';

const user = { role: 'user', content: 'Hi' };
const schema = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { name: 'weather', description: 'Tells it.', input_schema: schema };
const inChat = { type: 'function', function: { name: 'weather', description: 'Tells it.', parameters: schema } };
const inResponses = { type: 'function', name: 'weather', description: 'Tells it.', parameters: schema };
const text = { type: 'text', text: 'So.' };
const note = Buffer.from('A note.').toString('base64');
const use = { type: 'tool_use', id: 'call_a', name: 'weather', input: { city: 'Ulm' } };
const result = { type: 'tool_result', tool_use_id: 'call_a', content: 'Rain' };
const called = { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"city":"Ulm"}' } };
const round = [user, { role: 'assistant', content: [text, use] }, { role: 'user', content: [result] }];
const roundInChat = [
  user,
  { role: 'assistant', content: 'So.', tool_calls: [called] },
  { role: 'tool', tool_call_id: 'call_a', content: 'Rain' },
];

const shapes: readonly [name: string, foreign: object, native: object][] = [
  ['functions', { messages: [user], tools: [inChat] }, { messages: [user], tools: [weather] }],
  [
    'functions of the Responses API',
    { messages: [user], tools: [inResponses] },
    { messages: [user], tools: [weather] },
  ],
  ['a tool round', { messages: roundInChat, tools: [inChat] }, { messages: round, tools: [weather] }],
  ['a tool round without tools', { messages: roundInChat }, { messages: round }],
  [
    'a call without a text',
    { messages: [user, { role: 'assistant', content: null, tool_calls: [called] }, roundInChat[2]], tools: [inChat] },
    { messages: [user, { role: 'assistant', content: [use] }, round[2]], tools: [weather] },
  ],
  [
    'the older call of a function, and an answer without a text',
    {
      messages: [
        user,
        { role: 'assistant', content: null, refusal: 'No.' },
        user,
        { role: 'assistant', content: null, function_call: called.function },
        { role: 'function', name: 'weather', content: 'Rain' },
      ],
      tools: [inChat],
    },
    {
      messages: [
        user,
        user,
        { role: 'assistant', content: [{ ...use, id: 'call_unnamed_1_0' }] },
        { role: 'user', content: [{ ...result, tool_use_id: 'call_unnamed_1_0' }] },
      ],
      tools: [weather],
    },
  ],
  [
    'a choice by name',
    { messages: [user], tools: [inChat], tool_choice: { type: 'function', function: { name: 'weather' } } },
    { messages: [user], tools: [weather], tool_choice: { type: 'tool', name: 'weather' } },
  ],
  [
    'a choice in a word',
    { messages: [user], tools: [inChat], tool_choice: 'required' },
    { messages: [user], tools: [weather], tool_choice: { type: 'any' } },
  ],
  [
    'one call at a time',
    { messages: [user], tools: [inChat], parallel_tool_calls: false },
    { messages: [user], tools: [weather], tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
  ],
  [
    'one call at a time beside a choice',
    { messages: [user], tools: [inChat], tool_choice: 'required', parallel_tool_calls: false },
    { messages: [user], tools: [weather], tool_choice: { type: 'any', disable_parallel_tool_use: true } },
  ],
  [
    'a result that is an error',
    { messages: [user, roundInChat[1], { ...roundInChat[2], is_error: true }], tools: [inChat] },
    { messages: [user, round[1], { role: 'user', content: [{ ...result, is_error: true }] }], tools: [weather] },
  ],
  [
    'an empty list of calls beside the older call',
    {
      messages: [
        ...[user, { role: 'assistant', content: null, tool_calls: [], function_call: called.function }],
        { role: 'function', name: 'weather', content: 'Rain' },
      ],
      tools: [inChat],
    },
    {
      messages: [
        ...[user, { role: 'assistant', content: [{ ...use, id: 'call_unnamed_1_0' }] }],
        { role: 'user', content: [{ ...result, tool_use_id: 'call_unnamed_1_0' }] },
      ],
      tools: [weather],
    },
  ],
  [
    'an instruction in parts',
    { messages: [{ role: 'developer', content: [{ type: 'input_text', text: 'Be short.' }] }, user] },
    { messages: [{ role: 'system', content: [{ type: 'text', text: 'Be short.' }] }, user] },
  ],
  ['no limit as 0', { messages: [user], max_completion_tokens: 0 }, { messages: [user] }],
  [
    'settings',
    {
      ...{ messages: [user], max_completion_tokens: 9, stop: 'x' },
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
    },
    { messages: [user], max_tokens: 9, stop_sequences: ['x'], output_format: { type: 'json_schema', schema } },
  ],
  [
    'parts',
    {
      messages: [
        { role: 'developer', content: 'Be short.' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'So.' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
            { type: 'file', file: { file_data: `data:text/plain;base64,${note}`, filename: 'a.txt' } },
          ],
        },
      ],
    },
    {
      messages: [
        { role: 'system', content: 'Be short.' },
        {
          role: 'user',
          content: [
            text,
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
            { type: 'document', title: 'a.txt', source: { type: 'base64', media_type: 'text/plain', data: note } },
          ],
        },
      ],
    },
  ],
  [
    'an empty list for an empty object, as PHP writes it',
    {
      messages: [user, { role: 'assistant', content: [{ ...use, input: [] }] }, round[2]],
      tools: [{ name: 'now', input_schema: [] }],
    },
    {
      messages: [user, { role: 'assistant', content: [{ ...use, input: {} }] }, round[2]],
      tools: [{ name: 'now', input_schema: {} }],
    },
  ],
  [
    'the text of an input',
    {
      messages: [user, { role: 'assistant', content: [{ ...use, input: '{"city":"Ulm"}' }] }, round[2]],
      tools: [weather],
    },
    { messages: [user, { role: 'assistant', content: [use] }, round[2]], tools: [weather] },
  ],
  ['an empty text for no choice', { messages: [user], tool_choice: { type: '' } }, { messages: [user] }],
];

/** Returns the request, without what it lists as ignored. */
function read(body: object) {
  return { ...parseMessages(messagesBody.parse(body)), ignored: [] };
}

describe('A request for a message', () => {
  it.each(shapes)('may have other shapes: %s', (_, foreign, native) => {
    expect(read(foreign)).toEqual(read(native));
  });

  it('in its own shape is the same as before', () => {
    const body = {
      messages: round,
      tools: [weather, { type: 'custom', ...weather, name: 'b' }],
      odd: 1,
      max_tokens: 5,
    };
    expect(parseMessages(messagesBody.parse(body))).toEqual(parseMessages(messagesRequest.parse(body)));
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
    messagesBody.safeParse({ messages: [user], tools: [tool] });
    expect(copies).toBeLessThan(10);
  });

  it('lists no setting that it follows', () => {
    const body = { messages: [user], tools: [inChat], parallel_tool_calls: false };
    expect(parseMessages(messagesBody.parse(body)).ignored).toEqual([]);
  });

  it.each<[string, object]>([
    ['a tool without a name', { messages: [user], tools: [{ type: 'function', function: {} }] }],
    [
      'an image at an address',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a' } }] }] },
    ],
    ['a choice of an unknown kind', { messages: [user], tools: [inChat], tool_choice: 'odd' }],
    ['a call without a result', { messages: [user, roundInChat[1], user], tools: [inChat] }],
  ])('is refused if it has %s', (_, body) => {
    expect(() => read(body)).toThrow();
  });
});
