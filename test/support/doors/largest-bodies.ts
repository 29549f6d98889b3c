import { type DoorShape, doorShapes, png } from './door-bodies.js';

/** Largest body that a service with default limits accepts, for one API and field. */
export interface LargestBody {
  readonly path: string;
  readonly field: string;
  readonly body: string;
}

const bytes = 15_500_000;
/** Below the limit of 50,000 values per body. */
const values = 49_000;
const words = 'the words of a text ';
const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown) => ({ role: 'assistant', content });

function filled(unit: string, most = bytes): string {
  return unit.repeat(Math.floor(most / Buffer.byteLength(JSON.stringify(unit).slice(1, -1))));
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: Math.floor(count) }, (_, index) => make(index));
}

/** One string of each kind. */
const strings = {
  'one string': filled(words),
  blanks: `x${filled('x ')}`,
  'line ends': `x${filled('x\n')}`,
  Chinese: filled('漢'),
  brackets: filled('[[{"'),
};

interface Call {
  readonly id: string;
  readonly input: string;
}

/** Returns messages with calls and their results. */
function loopIn(door: DoorShape, calls: readonly Call[], result: string): unknown[] {
  if (door.path === '/v1/responses') {
    const made = calls.map(({ id, input }) => ({ type: 'function_call', call_id: id, name: 'note', arguments: input }));
    return [...made, ...calls.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: result }))];
  }
  if (door.isAnthropic) {
    const made = calls.map(({ id, input }) => ({ type: 'tool_use', id, name: 'note', input: JSON.parse(input) }));
    const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: result }));
    return [assistant(made), user(results)];
  }
  const made = calls.map(({ id, input }) => ({ id, type: 'function', function: { name: 'note', arguments: input } }));
  const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: result }));
  return [{ role: 'assistant', content: null, tool_calls: made }, ...results];
}

function nested(depth: number): object {
  let schema: object = { type: 'object' };
  for (let level = 0; level < depth; level++) schema = { type: 'object', properties: { a: schema } };
  return schema;
}

function shapesOf(door: DoorShape): (readonly [field: string, make: () => unknown])[] {
  const { text, tool, image } = door;
  const body: DoorShape['body'] = (messages, more) => ({ ...door.body(messages, more), model: 'eliza' });
  const parts = (count: number, make: (index: number) => unknown) => body([user(times(count, make))]);
  const wide = { type: 'object', properties: Object.fromEntries(times(300, (n) => [`a${n}`, { type: 'string' }])) };
  const tools = (count: number, schema: object, description = '') =>
    body([user('Hi')], { tools: times(count, (n) => tool(`t${n}`, { ...schema, description })) });
  const offer = { tools: [tool('note', { type: 'object' })] };
  const calls = times(values / 12, (n) => ({ id: `c${n}`, input: '{}' }));
  const result = filled(words, bytes / calls.length - 200);
  const loop = [user('Hi'), ...loopIn(door, calls, result)];
  const reminders = times(values / 7, (n) => ({ role: 'system', content: `reminder ${n}` }));
  const few = loopIn(door, calls.slice(0, calls.length / 3), 'x');
  return [
    ...Object.entries(strings).map(([name, content]) => [`text: ${name}`, () => body([user(content)])] as const),
    ...Object.entries(strings).map(
      ([name, content]) => [`answer: ${name}`, () => body([user('Hi'), assistant(content), user('Hi')])] as const,
    ),
    ['many strings', () => parts(values / 4, () => text(filled(words, 1200)))],
    ['many messages', () => body(times(12_001, (n) => (n % 2 === 0 ? user : assistant)(filled(words, 1200))))],
    [
      'many answers of blanks',
      () => body(times(12_001, (n) => (n % 2 === 0 ? user('Hi') : assistant(filled('x ', 2400))))),
    ],
    ['one image', () => parts(1, () => image('image/png', png.replace(/=*$/, '').padEnd(bytes - (bytes % 4), 'A')))],
    ['many images', () => parts(values / 8, () => image('image/png', png))],
    ['many tools', () => tools(128, { type: 'object' }, filled(words, 1900))],
    ['wide tools', () => tools(20, wide)],
    ['deep tools', () => tools(40, nested(40))],
    ['many calls and results', () => body(loop, offer)],
    ['many reminders behind results', () => body([user('Hi'), ...few, ...reminders, user('Go on')], offer)],
    [
      'long arguments',
      () => body([user('Hi'), ...loopIn(door, [{ id: 'c', input: JSON.stringify({ a: filled(words) }) }], 'x')], offer),
    ],
  ];
}

/** Returns the largest body with this field, for the API at this path. */
export function largestBody(path: string, field: string): string {
  const shapes = doorShapes.flatMap((door) => (door.path === path ? shapesOf(door) : []));
  const make = shapes.find(([name]) => name === field)?.[1];
  if (make === undefined) throw new Error(`${path} has no ${field}`);
  return JSON.stringify(make());
}

/** Generates the bodies lazily, because together they have a gigabyte. */
export function* largestBodies(): Generator<LargestBody> {
  for (const door of doorShapes) {
    for (const [field, make] of shapesOf(door)) {
      const body = JSON.stringify(make());
      yield { path: door.path, field, body };
      if (door.isAnthropic) yield { path: `${door.path}/count_tokens`, field, body };
    }
  }
  for (const [field, more] of Object.entries({
    instructions: { instructions: filled(words) },
    'instructions in the background': { instructions: filled(words), background: true },
    metadata: { metadata: { a: filled(words) } },
    'description of a format': {
      text: { format: { type: 'json_schema', name: 'a', description: filled(words), schema: { type: 'object' } } },
    },
  }))
    yield { path: '/v1/responses', field, body: JSON.stringify({ model: 'eliza', input: 'Hi', ...more }) };
  const messages = (content: string) => [user('Hi'), assistant(content), user('Hi')];
  for (const [name, content] of Object.entries(strings)) {
    yield { path: '/ask', field: `prompt: ${name}`, body: JSON.stringify({ prompt: content }) };
    yield { path: '/ask', field: `system: ${name}`, body: JSON.stringify({ prompt: 'Hi', system: content }) };
    yield {
      path: '/chat',
      field: `message: ${name}`,
      body: JSON.stringify({ message: content.slice(0, content.length / 2.5) }),
    };
    const chat = { model: 'eliza', stream: false, messages: messages(content) };
    yield { path: '/api/chat', field: `answer: ${name}`, body: JSON.stringify(chat) };
    const generate = { model: 'eliza', stream: false, prompt: content };
    yield { path: '/api/generate', field: `prompt: ${name}`, body: JSON.stringify(generate) };
    const params = { name: 'ask', arguments: { prompt: content } };
    yield {
      path: '/mcp',
      field: `prompt: ${name}`,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    };
  }
}
