import { type Arbitrary, array, assert, asyncProperty, constantFrom, integer, oneof, record, string } from 'fast-check';
import { startWithClaude } from '../../support/agents/claude-service.js';
import {
  type MessagesApi,
  type MessagesRequest,
  says,
  saysAndCalls,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import type { Service } from '../../support/service/service.js';

/** Number of random histories of other models. ODD_HISTORIES=500 tests more. */
const count = Number(process.env.ODD_HISTORIES ?? 32);
const seed = Number(process.env.PROPERTY_SEED ?? Date.now() % 2 ** 31);
const limitMs = Math.max(600_000, 3000 * count);
const beside = 4;

let api: MessagesApi;
let service: Service;
let answered = 0;

beforeAll(async () => {
  api = await startMessagesApi();
  api.behave = () => says('fine');
  const env = { MODEL_API_WORKERS: '1', MODEL_API_MAX_CONCURRENT: String(beside), MODEL_API_MAX_QUEUE: '100' };
  service = await startWithClaude(api, { env });
}, 600_000);
afterAll(async () => {
  await service?.stop();
  await api?.close();
});

const ids = constantFrom(
  'call_0',
  'call_1',
  'functions.look:0',
  'a|b',
  'größe',
  ' x ',
  'toolu_01A',
  `${'i'.repeat(200)}`,
);
const names = constantFrom('look', 'mcp.files/read', 'größe', 'n'.repeat(200), 'Bash', 'ToolSearch', 'a b');
const texts = oneof(constantFrom('', ' ', '\n\n', '/cost', '@/etc/passwd', 'a\0b', 'x\ud800', '😀'), string());
const inputs = constantFrom('{}', '{"q":"x"}', '{"id":9007199254740993}', '{"q":"\\ud800\\u0000"}', '[1]', '{"q', '');
const foreign = constantFrom(
  { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
  { type: 'web_search_tool_result', tool_use_id: 's', content: [{ type: 'web_search_result', title: 'T', url: 'u' }] },
  { type: 'mcp_tool_use', id: 'm', name: 'n', server_name: 'x', input: {} },
  { type: 'mcp_tool_result', tool_use_id: 'm', content: [{ type: 'text', text: ' ' }] },
  { type: 'compaction', content: 'so far' },
  { type: 'block_of_tomorrow' },
);

interface Round {
  readonly text: string;
  readonly besideCalls: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: string }[];
  readonly foreign: readonly object[];
  readonly asked: string;
  readonly isReversed: number;
}

const rounds: Arbitrary<Round[]> = array(
  record({
    text: texts,
    besideCalls: texts,
    calls: array(record({ id: ids, name: names, input: inputs }), { maxLength: 3 }),
    foreign: array(foreign, { maxLength: 2 }),
    asked: texts,
    isReversed: integer({ min: 0, max: 1 }),
  }),
  { minLength: 1, maxLength: 5 },
);

type Door = 'chat' | 'messages' | 'responses' | 'ollama' | 'ollama without ids';

interface Sent {
  readonly path: string;
  readonly body: object;
}

/**
 * Returns the results of a round. Each has a unique text. If calls have the same key, the first result belongs to the
 * first call.
 */
function resultsOf({ calls, isReversed }: Round, turn: number, key: 'id' | 'name' = 'id') {
  const left = [...calls];
  return (isReversed === 1 ? calls.toReversed() : calls).map((answered, at) => {
    const [call = answered] = left.splice(
      left.findIndex((each) => each[key] === answered[key]),
      1,
    );
    return { ...call, result: `result ${turn}.${at}.` };
  });
}

const schema = { type: 'object', properties: { q: { type: 'string' } } };
const end = 'And now?';

function objectOf(input: string): unknown {
  try {
    const value: unknown = JSON.parse(input);
    return Array.isArray(value) ? {} : value;
  } catch {
    return {};
  }
}

const doors: Readonly<Record<Door, (history: readonly Round[]) => Sent>> = {
  chat: (history) => {
    const messages = history.flatMap((round, turn) => [
      { role: 'user', content: round.asked },
      {
        role: 'assistant',
        content: [{ type: 'text', text: round.besideCalls }, ...round.foreign],
        tool_calls: round.calls.map(({ id, name, input }) => ({
          ...{ id, type: 'function', function: { name, arguments: input } },
        })),
      },
      ...resultsOf(round, turn).map(({ id, result }) => ({ role: 'tool', tool_call_id: id, content: `${result}\0` })),
      { role: 'assistant', content: round.text },
    ]);
    const tools = [{ type: 'function', function: { name: 'look', parameters: schema } }];
    return { path: '/v1/chat/completions', body: { tools, messages: [...messages, { role: 'user', content: end }] } };
  },
  messages: (history) => {
    const messages = history.flatMap((round, turn) => [
      { role: 'user', content: round.asked },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: round.besideCalls },
          ...round.foreign,
          ...round.calls.map(({ id, name, input }) => ({
            type: 'tool_use',
            id,
            name,
            input: objectOf(input),
          })),
        ],
      },
      {
        role: 'user',
        content: [
          ...resultsOf(round, turn).map(({ id, result }) => ({
            ...{ type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: `${result}\ud800` }] },
          })),
          { type: 'text', text: round.text },
        ],
      },
    ]);
    const tools = [{ name: 'look', input_schema: schema }];
    const last = [
      { role: 'assistant', content: 'ok' },
      { role: 'user', content: end },
    ];
    return { path: '/v1/messages', body: { max_tokens: 5000, tools, messages: [...messages, ...last] } };
  },
  responses: (history) => {
    const input = history.flatMap((round, turn) => [
      { role: 'user', content: round.asked },
      { type: 'web_search_call', status: 'completed' },
      ...round.calls.map(({ id, name, input: json }) => ({
        ...{ type: 'function_call', call_id: id, name, arguments: json },
      })),
      ...resultsOf(round, turn).map(({ id, result }) => ({
        ...{ type: 'function_call_output', call_id: id, output: `${result}\0` },
      })),
      { role: 'assistant', content: [{ type: 'output_text', text: round.text }] },
    ]);
    const tools = [{ type: 'function', name: 'look', parameters: schema }];
    const body = { store: false, tools, input: [...input, { role: 'user', content: end }] };
    return { path: '/v1/responses', body };
  },
  ollama: (history) => ollama(history, true),
  'ollama without ids': (history) => ollama(history, false),
};

/** Builds a request for Ollama. Older clients of Ollama drop the IDs of calls. */
function ollama(history: readonly Round[], hasIds: boolean): Sent {
  const messages = history.flatMap((round, turn) => [
    { role: 'user', content: round.asked },
    {
      role: 'assistant',
      content: round.besideCalls,
      tool_calls: round.calls.map(({ id, name, input }) => ({
        ...(hasIds && { id }),
        function: { name, arguments: objectOf(input) },
      })),
    },
    ...resultsOf(round, turn, keyOf(hasIds)).map(({ id, name, result }) => ({
      ...{ role: 'tool', tool_name: name, content: `${result}\0`, ...(hasIds && { tool_call_id: id }) },
    })),
    { role: 'assistant', content: round.text },
  ]);
  const tools = [{ type: 'function', function: { name: 'look', description: '', parameters: schema } }];
  const body = { stream: false, tools, messages: [...messages, { role: 'user', content: end }] };
  return { path: '/api/chat', body };
}

function keyOf(hasIds: boolean): 'id' | 'name' {
  return hasIds ? 'id' : 'name';
}

/** Returns the lost results. Each must be in one request to the API, once, under the ID of a call with its name. */
function lostResults({ body }: MessagesRequest, history: readonly Round[], key: 'id' | 'name' = 'id'): string[] {
  const blocks = body.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content)) as unknown as {
    readonly type: string;
    readonly id?: string;
    readonly name?: string;
    readonly tool_use_id?: string;
  }[];
  const nameOf = new Map(blocks.flatMap(({ type, id, name }) => (type === 'tool_use' ? [[id, name] as const] : [])));
  return history.flatMap((round, turn) =>
    resultsOf(round, turn, key).flatMap(({ result, name }) => {
      const found = blocks.filter((each) => each.type === 'tool_result' && JSON.stringify(each).includes(result));
      const called = nameOf.get(found[0]?.tool_use_id) ?? '';
      // The end of a long name is a hash.
      const isOfCall = called.startsWith(name.replace(/[^\w-]/gu, '_').slice(0, 50));
      return found.length === 1 && isOfCall ? [] : [`${result} of ${name}: ${found.length} found, of ${called}`];
    }),
  );
}

async function fault(door: Door, history: readonly Round[], tag: string): Promise<string | null> {
  const { path, body } = doors[door](history);
  const system = door === 'messages' ? { system: tag } : {};
  const instructed = door === 'responses' ? { instructions: tag } : system;
  const isSystemMessage = door !== 'messages' && door !== 'responses';
  const messages = isSystemMessage && [{ role: 'system', content: tag }, ...(body as { messages: object[] }).messages];
  const sent = { model: 'claude-sonnet-5', ...body, ...instructed, ...(messages && { messages }) };
  const answer = await service.post(path, sent);
  if (answer.status === 400)
    return /\b(?:messages|input)\b/.test(answer.text) ? null : `400 of no field: ${answer.text}`;
  if (answer.status !== 200) return `${answer.status}: ${answer.text} ${api.faults.at(-1)}`;
  const request = api.requests.find((each) => JSON.stringify(each.body.system ?? '').includes(tag));
  if (request === undefined) return 'no request with this system text';
  answered++;
  if (/\\u0000|\\ud[89a-f]/i.test(JSON.stringify(request.body))) return 'a text that the API refuses';
  return lostResults(request, history, keyOf(door !== 'ollama without ids')).join('; ') || null;
}

describe('A model that numbers its calls from the start in each answer', () => {
  it('receives each result once, under the id of its call', async () => {
    const before = api.requests.length;
    const call = { id: 'call_0', name: 'look', input: { q: 'x' } };
    api.behave = (_, index) => (index - before < 2 ? saysAndCalls('', call) : says('fine'));
    const tools = [{ type: 'function', function: { name: 'look', parameters: schema } }];
    const messages: object[] = [{ role: 'user', content: 'Look twice.' }];
    for (const result of ['result 0.0.', 'result 1.0.', '']) {
      const answer = await service.post('/v1/chat/completions', { model: 'claude-sonnet-5', tools, messages });
      const { message } = (JSON.parse(answer.text) as { choices: { message: object }[] }).choices[0] ?? {};
      messages.push({ ...message }, { role: 'tool', tool_call_id: call.id, content: result });
    }
    const round = { text: '', besideCalls: '', foreign: [], asked: '', isReversed: 0 };
    const calls = [{ ...call, input: '{}' }];
    const last = api.requests.at(-1) as MessagesRequest;
    expect(
      lostResults(last, [
        { ...round, calls },
        { ...round, calls },
      ]),
    ).toEqual([]);
    api.behave = () => says('fine');
  });
});

const allDoors = Object.keys(doors) as readonly Door[];

describe('A model that gives two calls of one message the same id', () => {
  const calls = ['a', 'b'].map((q) => ({ id: 'call_0', name: 'look', input: { q } }));
  const results = ['result 0.0.', 'result 0.1.'];

  /** Makes the model call a tool once. Returns the number of requests so far. */
  function callOnce(): number {
    const before = api.requests.length;
    api.behave = (_, index) => (index === before ? saysAndCalls('', ...calls) : says('fine'));
    return before;
  }

  function expectResults(before: number): void {
    api.behave = () => says('fine');
    const blocks =
      api.requests
        .slice(before)
        .at(-1)
        ?.body.messages.flatMap(({ content }) => [content].flat()) ?? [];
    const parts = blocks as readonly { type?: string; id?: string; tool_use_id?: string; input?: object }[];
    const inputs = new Map(parts.map(({ id, input }) => [id, input]));
    const found = parts.filter(({ type }) => type === 'tool_result');
    expect(found.map((each) => [inputs.get(each.tool_use_id), JSON.stringify(each)])).toEqual(
      calls.map(({ input }, at) => [input, expect.stringContaining(results[at] ?? '')]),
    );
  }

  it('receives the result of each call, and the client gets different ids', async () => {
    const before = callOnce();
    const tools = [{ type: 'function', function: { name: 'look', parameters: schema } }];
    const asked = { role: 'user', content: 'Look at both.' };
    const body = { model: 'claude-sonnet-5', tools };
    const first = await service.post('/v1/chat/completions', { ...body, messages: [asked] });
    const { message } = (first.body as { choices: { message: { tool_calls: { id: string }[] } }[] }).choices[0] ?? {};
    const ids = message?.tool_calls.map(({ id }) => id) ?? [];
    expect(ids).toEqual(['call_0', 'call_0_2']);
    const brought = ids.map((id, at) => ({ role: 'tool', tool_call_id: id, content: results[at] }));
    const second = await service.post('/v1/chat/completions', { ...body, messages: [asked, message, ...brought] });
    expect([second.status, second.text]).toEqual([200, expect.stringContaining('fine')]);
    expectResults(before);
  });

  it('receives them from a stored response too', async () => {
    const before = callOnce();
    const body = { model: 'claude-sonnet-5', tools: [{ type: 'function', name: 'look', parameters: schema }] };
    const { body: first } = await service.post('/v1/responses', { ...body, input: 'Look at both again.' });
    const ids = (first.output as { call_id: string }[]).map((item) => item.call_id);
    const input = ids.map((call_id, at) => ({ type: 'function_call_output', call_id, output: results[at] }));
    const second = await service.post('/v1/responses', { ...body, previous_response_id: first.id, input });
    expect([second.status, second.text]).toEqual([200, expect.stringContaining('fine')]);
    expectResults(before);
  });
});

describe('A history from another program', () => {
  it(
    `is answered with all of its results, or rejected by its field (${count} at random, seed ${seed})`,
    async () => {
      let number = 0;
      const property = asyncProperty(array(rounds, { minLength: beside, maxLength: beside }), async (histories) => {
        api.requests.length = 0;
        const tried = histories.map((history) => {
          const door = allDoors[number % allDoors.length] as Door;
          return fault(door, history, `History number ${++number}.`).then((found) => found && `${door}: ${found}`);
        });
        const faults = (await Promise.all(tried)).filter((found) => found !== null);
        expect(faults).toEqual([]);
      });
      await assert(property, { numRuns: Math.ceil(count / beside), seed, interruptAfterTimeLimit: 1_000_000 });
      expect(answered).toBeGreaterThan(count / 2);
    },
    limitMs,
  );
});
