import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nameForCli, nameForClient } from '../../../src/primary/cli/adapters/claude/tool-server.js';
import {
  plainLaunch,
  type Tool,
  type ToolOffer,
  type ToolResult,
  type Turn,
} from '../../../src/primary/cli/contract/adapter.js';
import { installClaude } from '../../support/agents/claude-service.js';
import {
  apiKey,
  type ClaudeLab,
  type ClaudeSession,
  type KnownClaude,
  learnClaude,
  openLab,
} from '../../support/agents/claude-session.js';
import {
  conversationOf,
  type MessagesApi,
  type MessagesRequest,
  says,
  saysAndCalls,
  saysAndGives,
} from '../../support/agents/messages-api-stub.js';

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

let known: KnownClaude;
let lab: ClaudeLab;
let api: MessagesApi;

beforeAll(async () => {
  known = await learnClaude(await installClaude(), apiKey);
}, 600_000);

beforeEach(async () => {
  lab = await openLab(known);
  api = lab.api;
});

afterEach(() => lab[Symbol.asyncDispose]());

function tool(name: string, more: Partial<Tool> = {}): Tool {
  const schema = JSON.stringify({ type: 'object', properties: { q: { type: 'string' } } });
  return { name, description: `What ${name} does.`, schema, ...more };
}

function offering(...tools: readonly Tool[]): ToolOffer {
  return { tools, choice: 'auto', isParallel: true };
}

function asked(text: string, more: Partial<Turn> = {}): Turn {
  return { ...plainLaunch(null), text, history: [], ...more };
}

/** Returns the messages of a request to the API, without the CLI's additions. */
function messagesOf({ body }: MessagesRequest) {
  const isOurs = (block: unknown) => !JSON.stringify(block).includes('<system-reminder>');
  const blocks = (content: unknown) => (Array.isArray(content) ? content.filter(isOurs) : content);
  const plain = (content: unknown) => JSON.parse(JSON.stringify(blocks(content), withoutCache));
  const messages = body.messages.filter(({ role }) => role !== 'system');
  return messages.map(({ role, content }) => ({ role, content: plain(content) }));
}

function withoutCache(name: string, value: unknown): unknown {
  return name === 'cache_control' ? undefined : value;
}

function lastRequest(): MessagesRequest {
  const last = api.requests.at(-1);
  if (last === undefined) throw new Error('nothing was asked');
  return last;
}

function result(id: string, text: string, more: Partial<ToolResult> = {}): ToolResult {
  return { id, text, isError: false, ...more };
}

/** Runs a round: the model calls this tool, and the client sends that result. Returns the last request to the API. */
async function round(claude: ClaudeSession, offer: ToolOffer, call: Called, text: string): Promise<MessagesRequest> {
  const [calling, answering] = [saysAndCalls('', { id: 'toolu_a', ...call }), says('done')];
  let count = 0;
  api.behave = () => (count++ === 0 ? calling : answering);
  expect((await claude.turn(asked('Do it.', { offer }))).end).toMatchObject({
    calls: [{ id: 'toolu_a', name: nameForClient(call.name) }],
  });
  expect((await claude.turn(asked('', { offer, results: [result('toolu_a', text)] }))).deltas.join('')).toBe('done');
  return lastRequest();
}

interface Called {
  readonly name: string;
  readonly input: unknown;
}

function toolsIn({ body }: MessagesRequest) {
  return (body.tools ?? []) as readonly { name: string; description: string; input_schema: { description?: string } }[];
}

describe('The tools of a client', () => {
  it('are supported by this version', () => {
    expect(known.programVersion.extras).toMatchObject({ tools: 'parallel', toolChoice: true });
  });

  it('are called twice in one message, get their results in another order, and the conversation continues', async () => {
    const offer = offering(tool('get_weather'), tool('Bash'));
    const calls = [
      { id: 'toolu_a', name: 'get_weather', input: { q: 'Oslo' } },
      { id: 'toolu_b', name: 'Bash', input: { q: 'ls' } },
    ];
    api.behave = (_, index) => (index === 0 ? saysAndCalls('I look.', ...calls) : says('It rains.'));
    const claude = await lab.start();
    const first = await claude.turn(asked('How is it?', { offer }));
    expect(first.end).toMatchObject({
      type: 'turn-end',
      calls: calls.map(({ id, name, input }) => ({ id, name, input: JSON.stringify(input) })),
      usage: { inputTokens: 18, outputTokens: 7, costUsd: null },
    });
    expect(first.deltas.join('')).toBe('I look.');
    expect(
      toolsIn(lastRequest())
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(['Bash', 'get_weather']);
    const results = [result('toolu_b', 'a file', { isError: true }), result('toolu_a', 'rain')];
    const second = await claude.turn(asked('', { offer, results }));
    expect(second.end).toMatchObject({ type: 'turn-end', text: null, usage: { inputTokens: 18, outputTokens: 7 } });
    expect(second.deltas.join('')).toBe('It rains.');
    expect(api.requests).toHaveLength(2); // no further turn is paid for
    const told = messagesOf(lastRequest()).at(-1)?.content;
    const byId = (told as { tool_use_id: string }[]).toSorted((a, b) => a.tool_use_id.localeCompare(b.tool_use_id));
    expect(byId).toMatchObject([
      { type: 'tool_result', tool_use_id: 'toolu_a', content: [{ type: 'text', text: 'rain' }] },
      { type: 'tool_result', tool_use_id: 'toolu_b', content: 'a file', is_error: true },
    ]);
    expect((await claude.turn(asked('Thanks.', { offer }))).deltas.join('')).toBe('It rains.');
    expect(messagesOf(lastRequest())).toHaveLength(5);
  });

  it('are called fourteen times at once, twice with equal input, and each call gets its result', async () => {
    const calls = Array.from({ length: 14 }, (_, at) => ({
      id: `toolu_${at}`,
      name: 'look',
      input: { q: `${at >> 1}` },
    }));
    const offer = offering(tool('look'));
    api.behave = (_, index) => (index === 0 ? saysAndCalls('', ...calls) : says('seen'));
    const claude = await lab.start();
    const first = await claude.turn(asked('Look.', { offer }));
    expect(first.end).toMatchObject({ calls: calls.map(({ id, input }) => ({ id, input: JSON.stringify(input) })) });
    const results = calls.map(({ id }) => result(id, `result of ${id}.`)).toReversed();
    expect((await claude.turn(asked('', { offer, results }))).deltas.join('')).toBe('seen');
    const told = JSON.stringify(messagesOf(lastRequest()).at(-1)?.content);
    for (const { id } of calls) expect(told).toContain(`result of ${id}.`);
  });

  it.each([
    ...['Bash', 'Read', 'Write', 'WebFetch', 'Task', 'mcp__x__y', 'mcp__relay__z', 'StructuredOutput', 'ToolSearch'],
  ])('are the only ones: nothing of %s runs on the host', async (name) => {
    const secret = join(lab.home.path, 'secret.txt');
    await writeFile(secret, 'canary');
    const claude = await lab.start();
    const made = join(lab.home.path, 'made');
    const input = {
      file_path: secret,
      command: `touch ${made}`,
      url: `file://${secret}`,
      prompt: 'x',
      content: 'y',
      q: `@${secret}`,
    };
    const last = await round(
      claude,
      offering(tool(name), tool('other')),
      { name: nameForCli(name), input },
      `@${secret}`,
    );
    expect(JSON.stringify(last.body.messages)).not.toContain('canary"');
    expect(messagesOf(last).at(-1)?.content).toMatchObject([{ type: 'tool_result', tool_use_id: 'toolu_a' }]);
    expect(JSON.stringify(messagesOf(last).at(-1))).toContain(`@${secret}`);
    expect(existsSync(made)).toBe(false);
    expect(toolsIn(last)).toHaveLength(2);
  });

  it('may have long descriptions and long results', async () => {
    const description = `${'a long story. '.repeat(800)}The end.`;
    const claude = await lab.start();
    const text = 'x'.repeat(300_000);
    const last = await round(claude, offering(tool('long', { description })), { name: 'long', input: {} }, text);
    const [{ description: short, input_schema: schema } = { description: '', input_schema: {} }] = toolsIn(last);
    expect(short + schema.description).toBe(description);
    expect(JSON.stringify(messagesOf(last).at(-1))).toContain(text);
  });

  it('may return images', async () => {
    const offer = offering(tool('draw'));
    api.behave = (_, index) =>
      index === 0 ? saysAndCalls('', { id: 'toolu_a', name: 'draw', input: {} }) : says('A dot.');
    const claude = await lab.start();
    await claude.turn(asked('Draw.', { offer }));
    const images = [{ mediaType: 'image/png', data: pixel, at: 2 }] as const;
    await claude.turn(asked('', { offer, results: [result('toolu_a', 'a b', { images })] }));
    const content = JSON.stringify(messagesOf(lastRequest()).at(-1));
    expect(content).toContain(pixel);
    expect(content).toMatch(/"a ".*"b"/);
  });

  it('end the turn as the API does if they are unknown or have invalid JSON', async () => {
    const calls = [{ id: 'toolu_a', name: 'nobody', input: { a: 1 } }];
    api.behave = () => saysAndCalls('', ...calls);
    const offer = offering(tool('look'));
    const claude = await lab.start();
    const { end } = await claude.turn(asked('Look.', { offer }));
    expect(end).toMatchObject({ calls: [{ id: 'toolu_a', name: 'nobody', input: '{"a":1}' }] });
  });

  it('work together with an answer schema', async () => {
    const schema = JSON.stringify({ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] });
    const offer = offering(tool('look'));
    const turn = asked('Look.', { offer, schema });
    api.behave = (_, index) =>
      index === 0 ? saysAndCalls('', { id: 'toolu_a', name: 'look', input: {} }) : saysAndGives('', { a: 'seen' });
    const claude = await lab.start(lab.plan(turn));
    expect((await claude.turn(turn)).end).toMatchObject({ calls: [{ name: 'look' }] });
    const { end } = await claude.turn({ ...turn, text: '', results: [result('toolu_a', 'ok')] });
    expect(end).toMatchObject({ type: 'turn-end', text: '{"a":"seen"}' });
    expect(end).not.toHaveProperty('calls');
  });
});

describe('A history with calls', () => {
  it('is replayed with its ids, results and images, also if only the last results are new', async () => {
    const images = [{ mediaType: 'image/png', data: pixel, at: 0 }] as const;
    const history: Turn['history'] = [
      { role: 'user', text: 'How is it?' },
      {
        role: 'assistant',
        text: 'I look.',
        calls: [
          { id: 'toolu_a', name: 'look', input: '{"q":"a"}' },
          { id: 'toolu_b', name: 'look', input: '{"q":"b"}' },
        ],
      },
      { role: 'user', text: 'Quick!', results: [result('toolu_a', 'rain', { images }), result('toolu_b', 'sun')] },
      { role: 'assistant', text: '', calls: [{ id: 'toolu_c', name: 'look', input: '{}' }] },
    ];
    api.behave = () => says('Well.');
    const claude = await lab.start();
    const offer = offering(tool('look'));
    const results = [result('toolu_c', 'x'.repeat(600_000), { isError: true })];
    const { deltas } = await claude.turn(asked('', { offer, history, results }));
    expect(deltas.join('')).toBe('Well.');
    expect(api.requests).toHaveLength(1);
    const said = messagesOf(lastRequest());
    expect(said.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user']);
    expect(said[1]?.content).toMatchObject([
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'toolu_a', name: 'look', input: { q: 'a' } },
      { type: 'tool_use', id: 'toolu_b', name: 'look', input: { q: 'b' } },
    ]);
    expect(said[2]?.content).toMatchObject([
      { type: 'tool_result', tool_use_id: 'toolu_a' },
      { type: 'tool_result', tool_use_id: 'toolu_b' },
      { type: 'text', text: 'Quick!' },
    ]);
    expect(JSON.stringify(said[2])).toContain(pixel);
    expect(said[4]?.content).toMatchObject([{ type: 'tool_result', tool_use_id: 'toolu_c', is_error: true }]);
    expect(JSON.stringify(said[4])).toContain('x'.repeat(600_000));
  });
});

describe('The answer options of a client', () => {
  it.each([
    [{ choice: 'none' }, { tool_choice: { type: 'none' } }],
    [{ choice: 'required' }, { tool_choice: { type: 'any' }, thinking: { type: 'disabled' } }],
    [{ choice: { name: 'look' } }, { tool_choice: { type: 'tool', name: 'look' }, thinking: { type: 'disabled' } }],
    [{ isParallel: false }, { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }],
  ] as const)('for its tools, %j, are sent to the API with that turn only', async (wish, told) => {
    api.behave = () => says('well');
    const claude = await lab.start();
    const plain = offering(tool('look'));
    const model = 'claude-opus-4-6'; // accepts a demanded call, and thoughts that are switched off
    await claude.turn(asked('one', { model, offer: { ...plain, ...wish } }));
    expect(lastRequest().body).toMatchObject(told);
    await claude.turn(asked('two', { model, offer: plain }));
    expect(lastRequest().body.tool_choice).toBeUndefined();
    expect(conversationOf(lastRequest()).map(({ text }) => text)).toEqual(['one', 'well', 'two']);
  });

  it('for its text are sent to the API with that turn only, in the middle of a loop too', async () => {
    const offer = offering(tool('look'));
    api.behave = (_, index) =>
      index === 0 ? saysAndCalls('', { id: 'toolu_a', name: 'look', input: {} }) : says('well');
    const claude = await lab.start();
    const sampling = { temperature: 0.5, topP: 0.9, maxTokens: 77 };
    await claude.turn(asked('one', { offer, sampling, stop: ['END'] }));
    const fields = { temperature: 0.5, top_p: 0.9, max_tokens: 77, stop_sequences: ['END'] };
    expect(lastRequest().body).toMatchObject(fields);
    await claude.turn(asked('', { offer, results: [result('toolu_a', 'ok')], sampling: { temperature: 0 } }));
    const { body } = lastRequest();
    expect(body).toMatchObject({ temperature: 0 });
    expect([body.top_p, body.stop_sequences, body.max_tokens === 77]).toEqual([undefined, undefined, false]);
    await claude.turn(asked('three', { offer }));
    expect(lastRequest().body.temperature).not.toBe(0);
  });

  it('end the answer at its stop sequence or its length, and the answer reports it', async () => {
    const claude = await lab.start();
    api.behave = () => ({ ...says('so far'), stopReason: 'stop_sequence', stopSequence: 'END' });
    const stopped = await claude.turn(asked('one', { stop: ['END'] }));
    expect(stopped.end).toMatchObject({ type: 'turn-end', stopSequence: 'END' });
    api.behave = () => ({ ...says('so far'), stopReason: 'max_tokens' });
    const cut = await claude.turn(asked('two', { sampling: { maxTokens: 5 } }));
    expect(cut.end).toMatchObject({ type: 'turn-end', isCutShort: true });
  });
});
