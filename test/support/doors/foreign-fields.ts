import { assistant, type Kind, maxValues, named, times, user } from './many.js';

/** Largest length of a text in UTF-16 units. */
const maxLength = 2_000_000;

const ids = (count: number, areEqual = false) => times(count, (i) => (areEqual ? 'c' : `c${i}`));
const chatCall = (id: string, input: unknown = '{}') => ({ id, function: { name: 'f', arguments: input } });
const chatResult = (tool_call_id: string) => ({ role: 'tool', tool_call_id, content: 'x' });
const blockCall = (id: string, input: unknown = {}) => ({ type: 'tool_use', id, name: 'f', input });
const blockResult = (tool_use_id: string) => ({ type: 'tool_result', tool_use_id, content: 'x' });
const itemCall = (call_id: string, input: unknown = '{}') => ({
  ...{ type: 'function_call', call_id, name: 'f', arguments: input },
});
const itemResult = (call_id: string) => ({ type: 'function_call_output', call_id, output: 'x' });
const shellCall = (call_id: string, action: unknown = { commands: ['ls'] }) => ({
  type: 'shell_call',
  call_id,
  action,
});
const shellResult = (call_id: string, output: unknown = 'x') => ({ type: 'shell_call_output', call_id, output });
const schemaTool = (name: string) => ({ name, input_schema: { type: 'object' } });
const chatTool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } });
const document = (data: string) => ({ type: 'document', source: { type: 'text', media_type: 'text/plain', data } });
const imageUrl = (url: string) => ({ type: 'image_url', image_url: { url } });
const fileOf = (file_data: string) => ({ type: 'file', file: { file_data, filename: 'a.txt' } });
const textUrl = (count: number) => `data:text/plain;base64,${'SGk='.repeat(Math.floor(count / 4))}`;
const jsonOf = (count: number) => JSON.stringify(named(count, (i) => i * 1e16));

/** Histories with foreign calls, which /v1/chat/completions and /v1/responses pair with their outputs. */
const pairs: readonly (readonly [name: string, most: number, make: (count: number) => readonly unknown[]])[] = [
  ['foreign calls and outputs', maxValues / 12, (n) => [...ids(n).map((id) => shellCall(id)), ...results(n)]],
  [
    'foreign calls and outputs in reverse order',
    maxValues / 12,
    (n) => [...ids(n).map((id) => shellCall(id)), ...results(n).toReversed()],
  ],
  [
    'foreign calls and outputs with equal ids',
    maxValues / 12,
    (n) => [...ids(n, true).map((id) => shellCall(id)), ...ids(n, true).map((id) => shellResult(id))],
  ],
  ['foreign outputs of one call', maxValues / 5, (n) => [shellCall('c'), ...ids(n, true).map((id) => shellResult(id))]],
  ['foreign calls of one output', maxValues / 8, (n) => [...ids(n, true).map((id) => shellCall(id)), shellResult('c')]],
  [
    'foreign calls with an output inside',
    maxValues / 6,
    (n) => ids(n).map((id) => ({ type: 'mcp_call', id, name: 'f', arguments: '{}', output: 'x' })),
  ],
  [
    'values of a foreign call',
    maxValues,
    (n) => [
      shellCall(
        'c',
        named(n, () => 1),
      ),
      shellResult('c'),
    ],
  ],
  [
    'values of a foreign output',
    maxValues,
    (n) => [
      shellCall('c'),
      shellResult(
        'c',
        named(n, () => 1),
      ),
    ],
  ],
  [
    'parts of a foreign output',
    maxValues / 3,
    (n) => [
      shellCall('c'),
      shellResult(
        'c',
        times(n, () => ({ type: 'input_text', text: 'x' })),
      ),
    ],
  ],
  ['long foreign outputs', maxLength, (n) => [shellCall('c'), shellResult('c', '"'.repeat(n))]],
  [
    'long types of calls',
    maxLength,
    (n) => [
      { ...shellCall('c'), type: `${'_call'.repeat(Math.floor(n / 5))} _call` },
      { ...shellResult('c'), type: `${'_call'.repeat(Math.floor(n / 5))}_output` },
    ],
  ],
];

function results(count: number): unknown[] {
  return ids(count).map((id) => shellResult(id));
}

/** Calls and results in the form of one API, which another API translates. */
const loops: readonly (readonly [name: string, loop: (ids: readonly string[]) => readonly unknown[]])[] = [
  [
    'chat completions',
    (each) => [
      { role: 'assistant', content: null, tool_calls: each.map((id) => chatCall(id)) },
      ...each.map(chatResult),
    ],
  ],
  [
    'older chat completions',
    (each) =>
      each.flatMap((name) => [
        { role: 'assistant', content: null, function_call: { name, arguments: '{}' } },
        { role: 'function', name, tool_call_id: name, content: 'x' },
      ]),
  ],
  ['messages', (each) => [assistant(each.map((id) => blockCall(id))), user(each.map(blockResult))]],
  ['responses', (each) => [...each.map((id) => itemCall(id)), ...each.map(itemResult)]],
];

/** Parts, of which each API has others. */
const parts: readonly (readonly [name: string, most: number, make: (count: number) => readonly unknown[]])[] = [
  ['images of chat completions', maxValues / 4, (n) => times(n, () => imageUrl('data:image/png;base64,AAAA'))],
  ['images of responses', maxValues / 3, (n) => times(n, () => ({ type: 'input_image', image_url: 'https://a.org' }))],
  ['images as objects', maxValues / 4, (n) => times(n, () => ({ ...imageUrl('https://a.org'), type: 'input_image' }))],
  ['files of chat completions', maxValues / 5, (n) => times(n, () => fileOf('data:text/plain;base64,SGk='))],
  [
    'files of responses',
    maxValues / 4,
    (n) => times(n, () => ({ type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,SGk=' })),
  ],
  ['documents of messages', maxValues / 6, (n) => times(n, () => document('x'))],
  ['texts of responses', maxValues / 3, (n) => times(n, () => ({ type: 'input_text', text: 'x' }))],
  ['a long file', maxLength, (n) => [fileOf(textUrl(n))]],
  ['a long document', maxLength, (n) => [document('x'.repeat(n))]],
  ['a long type of a file', maxLength, (n) => [fileOf(`data:${'a/;'.repeat(Math.floor(n / 3))}`)]],
  ['a long address of an image', maxLength, (n) => [imageUrl(`data:image/png;${'a'.repeat(n)}`)]],
];

const toolShapes: readonly (readonly [name: string, most: number, make: (name: string) => object])[] = [
  ['chat completions', maxValues / 6, chatTool],
  ['messages', maxValues / 4, schemaTool],
  ['responses', maxValues / 4, (name) => ({ type: 'function', name, parameters: [] })],
  ['nobody', maxValues / 3, (name) => ({ name, parameters: [] })],
];

/** Returns fields in the shapes of other APIs at one path. `field`: name of the list of messages or items. */
function atPath(path: string, field: 'messages' | 'input'): (readonly [path: string, ...Kind])[] {
  const body = (history: readonly unknown[], more: object = {}) => ({
    ...{ model: 'eliza', max_tokens: 9, [field]: [user('Hi'), ...history, user('Hi')] },
    ...more,
  });
  const offer = { tools: [chatTool('f')] };
  const kinds: Kind[] = [
    ...loops.flatMap(([api, loop]): Kind[] =>
      [false, true].map((areEqual) => [
        `calls and results of ${api}${areEqual ? ' with equal ids' : ''}`,
        maxValues / 14,
        (n) => body(loop(ids(n, areEqual)), offer),
      ]),
    ),
    ...parts.map(([name, most, make]): Kind => [name, most, (n) => body([user(make(n))])]),
    ...toolShapes.flatMap(([api, most, make]): Kind[] => [
      [`tools of ${api}`, most, (n) => body([], { tools: times(n, (i) => make(`f${i}`)) })],
      [
        `allowed tools of ${api}`,
        most,
        (n) => {
          const chosen = { mode: 'auto', tools: times(n, (i) => make(`f${i % 100}`)) };
          const tools = times(100, (i) => make(`f${i}`));
          return body([], { tools, tool_choice: { type: 'allowed_tools', ...chosen, allowed_tools: chosen } });
        },
      ],
    ]),
    ['values in arguments', maxValues, (n) => body([assistantCall(jsonOf(n)), chatResult('c')], offer)],
    ['values in an input', maxValues, (n) => body([assistantCall(named(n, () => 1)), chatResult('c')], offer)],
    [
      'values in an input of a block',
      maxValues,
      (n) =>
        body(
          [
            assistant([
              blockCall(
                'c',
                named(n, () => 1),
              ),
            ]),
            user([blockResult('c')]),
          ],
          offer,
        ),
    ],
    ['brackets in arguments', maxLength, (n) => body([assistantCall('['.repeat(n)), chatResult('c')], offer)],
    ['stop sequences of another API', maxValues, (n) => body([], { stop: times(n, () => 'x') })],
    ['stop sequences of messages', maxValues, (n) => body([], { stop_sequences: times(n, () => 'x') })],
    ['system blocks', maxValues / 3, (n) => body([], { system: times(n, () => ({ type: 'text', text: 'x' })) })],
    ['a long instruction', maxLength, (n) => body([], { instructions: 'x'.repeat(n), system: 'x'.repeat(n) })],
    [
      'names of a format',
      maxValues / 20,
      (n) => {
        const schema = { type: 'object', properties: named(n, () => ({})) };
        const format = { type: 'json_schema', name: 'a', schema };
        return body([], { response_format: { type: 'json_schema', json_schema: format }, text: { format } });
      },
    ],
  ];
  return kinds.map(([name, ...kind]) => [path, `${name}, in ${field}`, ...kind] as const);
}

function assistantCall(input: unknown): object {
  return { role: 'assistant', content: null, tool_calls: [chatCall('c', input)] };
}

const completion = (prompt: unknown, more: object = {}) => ({ model: 'eliza', prompt, ...more });

/** Fields in the shapes of other APIs, and fields of the older completions. */
export const foreignFields: readonly (readonly [path: string, ...Kind])[] = [
  ...atPath('/v1/chat/completions', 'messages'),
  ...atPath('/v1/chat/completions', 'input'),
  ...atPath('/v1/responses', 'messages'),
  ...atPath('/v1/responses', 'input'),
  ...atPath('/v1/messages', 'messages'),
  ...(['/v1/chat/completions', '/v1/responses'] as const).flatMap((path) =>
    pairs.map(
      ([name, most, make]) =>
        [path, name, most, (n: number) => ({ model: 'eliza', input: [user('Hi'), ...make(n), user('Hi')] })] as const,
    ),
  ),
  [
    '/v1/chat/completions',
    'tools of items',
    maxValues / 6,
    (n) => ({
      model: 'eliza',
      input: [...times(n, (i) => ({ type: 'additional_tools', tools: [schemaTool(`f${i}`)] })), user('Hi')],
    }),
  ],
  ['/v1/completions', 'a long prompt', maxLength, (n) => completion('x'.repeat(n))],
  ['/v1/completions', 'a prompt of blanks', maxLength, (n) => completion([`${' '.repeat(n)}x`])],
  ['/v1/completions', 'stop sequences', maxValues, (n) => completion('Hi', { stop: times(n, () => 'x') })],
  ['/v1/completions', 'models', maxValues, (n) => completion('Hi', { models: times(n, (i) => `m${i}`) })],
  ['/v1/completions', 'tools', maxValues / 6, (n) => completion('Hi', { tools: times(n, (i) => chatTool(`f${i}`)) })],
  [
    '/v1/files',
    'names in the header of a form',
    10_000,
    (n) => `--edge\r\nContent-Disposition: form-data; name="file"${'; filename*x'.repeat(Math.floor(n / 12))}\r\n\r\n`,
  ],
  [
    '/v1/files',
    'quotes in the header of a form',
    10_000,
    (n) => `--edge\r\nContent-Disposition: form-data; name=file; a${'"\\'.repeat(Math.floor(n / 2))}\r\n\r\n`,
  ],
  [
    '/v1/files',
    'blanks in the header of a form',
    10_000,
    (n) =>
      `--edge\r\nContent-Disposition:${'; '.repeat(Math.floor(n / 4))}name${' '.repeat(Math.floor(n / 2))}x\r\n\r\n`,
  ],
];
