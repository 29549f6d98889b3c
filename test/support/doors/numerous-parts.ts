import { type DoorShape, doorShapes, png } from './door-bodies.js';
import { foreignFields } from './foreign-fields.js';
import { assistant, type Kind, maxValues, named, times, user } from './many.js';
import { otherFields } from './numerous-fields.js';

/** Body with a given number of parts of one kind. */
export interface NumerousParts {
  readonly path: string;
  readonly field: string;
  /** Largest number of parts that the limits of a body allow, or a tenth more. */
  readonly most: number;
  /** Makes the body, or the text of a file. */
  readonly make: (count: number) => object | string;
}

function nested(depth: number, innermost: unknown, wrap: (inner: unknown) => unknown): unknown {
  let value = innermost;
  for (let level = 0; level < depth; level++) value = wrap(value);
  return value;
}

/** JSON schemas of up to 60 KB. */
const numerousInSchemas: readonly (readonly [name: string, most: number, make: (count: number) => object])[] = [
  ['properties', 2500, (n) => ({ properties: named(n, () => ({ type: 'null' })) })],
  ['dependencies with lists', 4000, (n) => ({ dependencies: named(n, () => ['a']) })],
  ['dependencies with schemas', 4000, (n) => ({ dependencies: named(n, () => ({})) })],
  ['both kinds of dependencies', 4000, (n) => ({ dependencies: named(n, (i) => (i % 2 === 0 ? [] : {})) })],
  [
    'dependencies beside dependentSchemas',
    2000,
    (n) => ({ dependentSchemas: named(n, () => ({})), dependencies: named(n, () => ({})) }),
  ],
  ['required', 6000, (n) => ({ required: times(n, (i) => `n${i}`) })],
  ['enum', 6000, (n) => ({ nullable: true, type: 'string', enum: times(n, (i) => `n${i}`) })],
  ['types', 8000, (n) => ({ properties: { a: { type: times(n, () => 'null') } } })],
  ['unknown types', 3000, (n) => ({ properties: { a: { anyOf: times(n, () => ({ type: 'x' })) } } })],
  ['references', 1500, (n) => ({ $defs: named(n, () => ({})), allOf: times(n, (i) => ({ $ref: `#/$defs/n${i}` })) })],
  ['references to nothing', 2500, (n) => ({ allOf: times(n, (i) => ({ $ref: `#/x/${i}` })) })],
  ['a reference of many steps', 8000, (n) => ({ $ref: `#/${times(n, () => 'not').join('/')}` })],
  ['patterns', 2500, (n) => ({ patternProperties: Object.fromEntries(times(n, (i) => [`(?P<a>${i})\\Z`, {}])) })],
  ['groups of a pattern', 8000, (n) => ({ properties: { a: { pattern: '(?:a)'.repeat(n) } } })],
  [
    'named groups of a pattern',
    4000,
    (n) => ({ properties: { a: { pattern: times(n, (i) => `(?<a${i}>)`).join('') } } }),
  ],
  ['tuples', 8000, (n) => ({ properties: { a: { items: times(n, () => ({})) } } })],
  ['nullable parts', 2500, (n) => ({ anyOf: times(n, () => ({ nullable: true })) })],
  ['unknown keywords', 6000, (n) => named(n, () => 1)],
  ['names that no API accepts', 3000, (n) => ({ properties: Object.fromEntries(times(n, (i) => [`a b${i}`, {}])) })],
  ['levels', 60, (n) => nested(n, {}, (inner) => ({ properties: { a: inner } })) as object],
];

/** Calls with results, in several orders and with several kinds of ids. */
const callOrders: readonly (readonly [
  name: string,
  id: (index: number) => string,
  order: (ids: string[]) => string[],
])[] = [
  ['in order', (i) => `c${i}`, (ids) => ids],
  ['in reverse order', (i) => `c${i}`, (ids) => ids.toReversed()],
  ['with equal ids', () => 'c', (ids) => ids],
  ['with ids like those of equal ids', (i) => (i % 2 === 0 ? 'c' : `c_${i}`), (ids) => ids],
];

function loopIn({ path, isAnthropic }: DoorShape, calls: readonly string[], results: readonly string[]): unknown[] {
  if (path === '/v1/responses')
    return [
      ...calls.map((call_id) => ({ type: 'function_call', call_id, name: 'f', arguments: '{}' })),
      ...results.map((call_id) => ({ type: 'function_call_output', call_id, output: 'x' })),
    ];
  if (isAnthropic)
    return [
      assistant(calls.map((id) => ({ type: 'tool_use', id, name: 'f', input: {} }))),
      user(results.map((tool_use_id) => ({ type: 'tool_result', tool_use_id, content: 'x' }))),
    ];
  const made = calls.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } }));
  const answers = results.map((tool_call_id) => ({ role: 'tool', tool_call_id, content: 'x' }));
  return [{ role: 'assistant', content: null, tool_calls: made }, ...answers];
}

function kindsOfDoor(door: DoorShape): Kind[] {
  const { text, tool, image } = door;
  const body = (messages: readonly unknown[], more = {}) => ({ ...door.body(messages, more), model: 'eliza' });
  const offer = { tools: [tool('f', { type: 'object' })] };
  const foreign = (content: unknown) => ({ type: 'odd_result', content });
  const loops = callOrders.flatMap(([order, idOf, ordered]): Kind[] =>
    [offer, {}].map((tools) => [
      `calls and results ${order}${tools === offer ? '' : ', without tools'}`,
      maxValues / 12,
      (n) => {
        const ids = times(n, idOf);
        return body([user('Hi'), ...loopIn(door, ids, ordered(ids))], tools);
      },
    ]),
  );
  const rounds = (n: number) =>
    times(n, (i) => [...loopIn(door, [`c${i}`], [`c${i}`]), { role: 'system', content: `${i}` }]).flat();
  return [
    ['messages', maxValues / 3, (n) => body([...times(n, (i) => (i % 2 === 0 ? user : assistant)('Hi')), user('Hi')])],
    ['messages of one role', maxValues / 3, (n) => body(times(n, () => user('Hi')))],
    [
      'system messages',
      maxValues / 3,
      (n) => body([...times(n, () => ({ role: 'system', content: 'Hi' })), user('Hi')]),
    ],
    ['parts', maxValues / 3, (n) => body([user(times(n, () => text('Hi')))])],
    ['parts of an answer', maxValues / 3, (n) => body([user('Hi'), assistant(times(n, () => text('Hi'))), user('Hi')])],
    ['images', maxValues / 7, (n) => body([user(times(n, () => image('image/png', png)))])],
    ['foreign parts', maxValues / 4, (n) => body([user('Hi'), assistant(times(n, () => foreign('x'))), user('Hi')])],
    [
      'texts in foreign parts',
      maxValues / 3,
      (n) =>
        body([
          user('Hi'),
          assistant([
            nested(
              100,
              times(n, () => ({ text: 'x' })),
              foreign,
            ),
          ]),
          user('Hi'),
        ]),
    ],
    [
      'parts in parts',
      maxValues,
      (n) => {
        const innermost = times(Math.floor(n / 2.2), () => ({ type: 'x' }));
        return body([user(nested(Math.floor(n / 520), innermost, (content) => [{ type: 'x', content }]))]);
      },
    ],
    ['rounds with reminders', maxValues / 20, (n) => body([user('Hi'), ...rounds(n), user('Hi')], offer)],
    ['unknown fields', maxValues, (n) => ({ ...body([user('Hi')]), ...named(n, () => 1) })],
    ['unknown fields of a message', maxValues, (n) => body([{ ...user('Hi'), ...named(n, () => 1) }])],
    [
      'unknown fields of parts',
      maxValues / 6,
      (n) => body([user(times(n, (i) => ({ ...(text('Hi') as object), [`n${i}`]: 1 })))]),
    ],
    ['metadata', maxValues, (n) => ({ ...body([user('Hi')]), metadata: named(n, () => 'x') })],
    ['invalid messages', maxValues, (n) => body(times(n, () => 1))],
    ['invalid parts', maxValues, (n) => body([user(times(n, () => 1))])],
    ['too many tools', maxValues / 8, (n) => body([user('Hi')], { tools: times(n, (i) => tool(`t${i}`, {})) })],
    ['too many stop sequences', maxValues, (n) => ({ ...body([user('Hi')]), ...door.stop(times(n, () => 'x')) })],
    ...loops,
  ];
}

const chatModel = { model: 'eliza', messages: [user('Hi')] };
const weather = (name: string) => ({ type: 'function', function: { name, parameters: {} } });

/** Fields that only one API has. */
const apiFields: readonly (readonly [path: string, ...Kind])[] = [
  [
    '/v1/chat/completions',
    'allowed tools',
    maxValues / 4,
    (n) => ({
      ...chatModel,
      tools: times(100, (i) => weather(`f${i}`)),
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: {
          mode: 'auto',
          tools: times(n, (i) => ({ type: 'function', function: { name: `f${i % 100}` } })),
        },
      },
    }),
  ],
  [
    '/v1/chat/completions',
    'older calls',
    maxValues / 8,
    (n) => ({
      ...chatModel,
      messages: [
        user('Hi'),
        ...times(n, (i) => ({ role: 'assistant', content: null, function_call: { name: `f${i}`, arguments: '{}' } })),
        ...times(n, (i) => ({ role: 'function', name: `f${n - 1 - i}`, content: 'x' })),
      ],
      functions: [{ name: 'f' }],
    }),
  ],
  [
    '/v1/chat/completions',
    'values in arguments',
    maxValues,
    (n) => ({
      ...chatModel,
      ...{ tools: [weather('f')] },
      messages: [
        user('Hi'),
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'c', type: 'function', function: { name: 'f', arguments: JSON.stringify(named(n, () => 1)) } },
          ],
        },
        { role: 'tool', tool_call_id: 'c', content: 'x' },
      ],
    }),
  ],
  ['/v1/chat/completions', 'models', maxValues, (n) => ({ ...chatModel, models: times(n, (i) => `m${i}`) })],
  [
    '/v1/responses',
    'lists of tools',
    maxValues / 4,
    (n) => ({ model: 'eliza', input: [...times(n, () => ({ type: 'additional_tools', tools: [] })), user('Hi')] }),
  ],
  [
    '/v1/responses',
    'foreign items',
    maxValues / 4,
    (n) => ({ model: 'eliza', input: [...times(n, () => ({ type: 'odd_call_output', output: 'x' })), user('Hi')] }),
  ],
  [
    '/v1/responses',
    'thoughts',
    maxValues / 3,
    (n) => ({ model: 'eliza', input: [...times(n, () => ({ type: 'reasoning', summary: [] })), user('Hi')] }),
  ],
  [
    '/v1/messages',
    'cache breakpoints',
    maxValues / 5,
    (n) => ({
      model: 'eliza',
      max_tokens: 9,
      messages: [user(times(n, () => ({ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } })))],
    }),
  ],
  [
    '/v1/messages',
    'citing parts',
    maxValues / 5,
    (n) => ({
      model: 'eliza',
      max_tokens: 9,
      messages: [user('Hi'), assistant(times(n, () => ({ type: 'text', text: 'x', citations: [{}] }))), user('Hi')],
    }),
  ],
  [
    '/v1/messages',
    'thoughts',
    maxValues / 4,
    (n) => ({
      model: 'eliza',
      max_tokens: 9,
      messages: [user('Hi'), assistant(times(n, () => ({ type: 'thinking', thinking: 'x' }))), user('Hi')],
    }),
  ],
  [
    '/v1/messages',
    'parts of a result',
    maxValues / 3,
    (n) => ({
      model: 'eliza',
      max_tokens: 9,
      tools: [{ name: 'f', input_schema: {} }],
      messages: [
        user('Hi'),
        assistant([{ type: 'tool_use', id: 'c', name: 'f', input: {} }]),
        user([{ type: 'tool_result', tool_use_id: 'c', content: times(n, () => ({ type: 'text', text: 'x' })) }]),
      ],
    }),
  ],
  ...(['tool_call_id', 'tool_name', 'none'] as const).flatMap((mark) =>
    [false, true].map((isReversed): readonly [string, ...Kind] => [
      '/api/chat',
      `calls and results by ${mark}${isReversed ? ', in reverse order' : ''}`,
      maxValues / 8,
      (n) => {
        const calls = times(n, (i) => ({ id: `c${i}`, function: { name: `f${i}`, arguments: {} } }));
        const results = times(n, (i) => ({
          role: 'tool',
          content: 'x',
          [mark]: mark === 'tool_name' ? `f${i}` : `c${i}`,
        }));
        return {
          ...chatModel,
          tools: [weather('f')],
          messages: [
            user('Hi'),
            { role: 'assistant', content: '', tool_calls: calls },
            ...(isReversed ? results.toReversed() : results),
          ],
        };
      },
    ]),
  ),
  [
    '/api/chat',
    'messages',
    maxValues / 3,
    (n) => ({ model: 'eliza', messages: [...times(n, (i) => (i % 2 === 0 ? user : assistant)('Hi')), user('Hi')] }),
  ],
  [
    '/api/chat',
    'images',
    maxValues,
    (n) => ({ model: 'eliza', messages: [{ ...user('Hi'), images: times(n, () => png) }] }),
  ],
  ['/api/generate', 'images', maxValues, (n) => ({ model: 'eliza', prompt: 'Hi', images: times(n, () => png) })],
  [
    '/api/generate',
    'unknown options',
    maxValues,
    (n) => ({ model: 'eliza', prompt: 'Hi', options: named(n, () => 1) }),
  ],
  ['/ask', 'unknown fields', maxValues, (n) => ({ prompt: 'Hi', ...named(n, () => 1) })],
  [
    '/ask',
    'images',
    maxValues / 3,
    (n) => ({ prompt: 'Hi', images: times(n, () => ({ media_type: 'image/png', data: png })) }),
  ],
  ['/ask', 'files', maxValues / 2, (n) => ({ prompt: 'Hi', files: times(n, () => ({ text: 'x' })) })],
  ['/chat', 'unknown fields', maxValues, (n) => ({ message: 'Hi', ...named(n, () => 1) })],
  [
    '/mcp',
    'arguments',
    maxValues,
    (n) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'ask', arguments: { prompt: 'Hi', ...named(n, () => null) } },
    }),
  ],
  ['/mcp', 'unknown fields', maxValues, (n) => ({ jsonrpc: '2.0', id: 1, method: 'ping', ...named(n, () => 1) })],
];

/** Returns a body for each API and each kind of part of which it may have many. */
export function numerousParts(): NumerousParts[] {
  const doors = doorShapes.flatMap((door) => kindsOfDoor(door).map((kind) => [door.path, ...kind] as const));
  // The code for schemas is the same for all APIs.
  const schemas = numerousInSchemas.flatMap(([name, most, make]) => {
    const schema = (n: number) => ({ type: 'object', ...make(n) });
    const tool = (n: number) => ({ type: 'function', function: { name: 'f', parameters: schema(n) } });
    return [
      [
        '/v1/chat/completions',
        `${name} of a tool`,
        most * 4,
        (n: number) => ({ ...chatModel, tools: [tool(n)] }),
      ] as const,
      ['/ask', `${name} of the answer`, most, (n: number) => ({ prompt: 'Hi', schema: schema(n) })] as const,
    ];
  });
  return [...doors, ...apiFields, ...otherFields, ...foreignFields, ...schemas].map(([path, field, most, make]) => ({
    ...{ path, field, most: Math.floor(most), make: (count: number) => make(Math.floor(count)) },
  }));
}
