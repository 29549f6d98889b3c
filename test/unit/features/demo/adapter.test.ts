import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { demoAdapter } from '../../../../src/features/demo/adapter.js';
import {
  type Consult,
  type Decoder,
  type DecoderEvent,
  type Exit,
  type ProgramVersion,
  plainLaunch,
  type ToolOffer,
  type TurnEvent,
} from '../../../../src/primary/cli/contract/adapter.js';

const program = join(__dirname, '../../../../src/features/demo/program/main.js');
const adapter = demoAdapter(['node', 'demo.js']);
const killed: Exit = { code: null, signal: 'SIGKILL', stderr: '' };

const askProgram: Consult = async (args, input = '') => {
  const { status, stdout } = spawnSync(process.execPath, [program, ...args], { input, encoding: 'utf8' });
  return { code: status, stdout };
};

function programVersion(stdout = 'prompt-relay-demo 1.0.0\n'): Promise<ProgramVersion> {
  return adapter.learn(async () => ({ code: 0, stdout }));
}

async function decoder(): Promise<Decoder<DecoderEvent>> {
  return (await programVersion()).protocol().decoder;
}

function read(from: Decoder<DecoderEvent>, chunks: readonly string[]): readonly DecoderEvent[] {
  return chunks.flatMap((chunk) => [...from.read(chunk)]);
}

function lines(...values: readonly unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

const end = { type: 'end', model: 'eliza', usage: { input_tokens: 2, output_tokens: 3 } };
const turnEnd: TurnEvent = {
  type: 'turn-end',
  text: null,
  model: 'eliza',
  usage: { inputTokens: 2, outputTokens: 3, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null },
};

describe('The demo adapter', () => {
  it('offers the models of the program, the default first', async () => {
    const models = await (await programVersion()).listModels(askProgram);
    expect(models?.map(({ id }) => id)).toEqual(adapter.models);
    expect(models?.[0]?.default).toBe(true);
  });

  it('can run jobs if the program lists its models', async () => {
    const { check } = await programVersion();
    expect(await check(askProgram)).toBeNull();
    expect(await check(async () => ({ code: 1, stdout: 'no such file' }))).toBe('the demo model does not answer');
  });

  it('learns the version, or continues without one', async () => {
    expect((await programVersion()).version).toBe('1.0.0');
    expect((await programVersion('something else')).version).toBeNull();
  });

  it('adds a model to the arguments only if the launch names one, and nothing else', async () => {
    const { plan } = await programVersion();
    const none = { files: [] };
    expect(plan({ ...plainLaunch(null), system: 'secret' }, '/private/system')).toEqual({ args: [], ...none });
    expect(plan({ ...plainLaunch('echo'), system: 'secret' }, '/private/system')).toEqual({
      args: ['--model', 'echo'],
      ...none,
    });
  });
});

describe('The input that the demo adapter writes', () => {
  it('is one line for a first turn', async () => {
    const { write } = (await programVersion()).protocol().writer;
    expect(write({ ...plainLaunch(null), text: 'a\nb "c" \u2028', history: [] }, 1)).toEqual({
      text: lines({ type: 'user', text: 'a\nb "c" \u2028', turn: 1 }),
      stdin: 'keep-open',
    });
  });

  it('is the system text, then the history with its roles, then the turn', async () => {
    const { write } = (await programVersion()).protocol().writer;
    const history = [
      { role: 'user', text: 'one' },
      { role: 'assistant', text: 'two' },
    ] as const;
    expect(write({ ...plainLaunch(null), text: 'three', system: 'zero', history }, 1).text).toBe(
      lines(
        { type: 'system', text: 'zero' },
        { type: 'replay', role: 'user', text: 'one' },
        { type: 'replay', role: 'assistant', text: 'two' },
        { type: 'user', text: 'three', turn: 1 },
      ),
    );
  });
});

describe('The tool messages that the demo adapter writes', () => {
  const tools = [{ name: 'weather', description: 'Tells it', schema: '{"type":"object"}' }];
  const asked = { ...plainLaunch(null), text: 'Hi', history: [] };
  const schemas = [{ name: 'weather', schema: { type: 'object' } }];

  it.each<[ToolOffer['choice'], object]>([
    ['auto', { tools: schemas, must: false }],
    ['required', { tools: schemas, must: true }],
    [{ name: 'weather' }, { tools: schemas, must: 'weather' }],
    ['none', {}],
  ])('list the tools, and which must be called: %j', async (choice, expected) => {
    const { write } = (await programVersion()).protocol().writer;
    const { text } = write({ ...asked, offer: { tools, choice, isParallel: true } }, 1);
    expect(text).toBe(lines({ type: 'user', text: 'Hi', ...expected, turn: 1 }));
  });

  it('contain the calls of the history, and the results of open calls', async () => {
    const { write } = (await programVersion()).protocol().writer;
    const calls = [{ id: '1', name: 'weather', input: '{"city":"Bonn"}' }];
    const history = [
      { role: 'user', text: 'one' },
      { role: 'assistant', text: '', calls },
    ] as const;
    const results = [
      { id: '1', text: 'windy', isError: false },
      { id: '2', text: 'gone', isError: true },
    ];
    expect(write({ ...asked, text: '', history, results }, 3).text).toBe(
      lines(
        { type: 'replay', role: 'user', text: 'one' },
        { type: 'replay', role: 'assistant', text: '', calls },
        {
          ...{ type: 'user', text: '' },
          results: [
            { id: '1', text: 'windy', is_error: false },
            { id: '2', text: 'gone', is_error: true },
          ],
          turn: 3,
        },
      ),
    );
  });
});

describe('The demo program', () => {
  it('calls a tool and repeats its result, after a replay too', async () => {
    const { write } = (await programVersion()).protocol().writer;
    const tools = [{ name: 'weather', description: '', schema: '{"type":"object"}' }];
    const offer = { tools, choice: 'auto', isParallel: true } as const;
    const text = 'call weather {"city":"Bonn"}';
    const question = write({ ...plainLaunch(null), text, history: [], offer }, 1).text;
    const { stdout } = await askProgram([], question);
    const [start, input, end, ...more] = read(await decoder(), [stdout]);
    expect([start, input, more]).toEqual([
      { type: 'call-start', id: expect.any(String), name: 'weather' },
      { type: 'call-delta', text: '{"city":"Bonn"}' },
      [],
    ]);
    const calls = end?.type === 'turn-end' ? end.calls : undefined;
    expect(calls).toEqual([{ id: expect.any(String), name: 'weather', input: '{"city":"Bonn"}' }]);
    const results = [{ id: calls?.[0]?.id ?? '', text: 'windy', isError: false }];
    const history = [
      { role: 'user', text },
      { role: 'assistant', text: '', calls: calls ?? [] },
    ] as const;
    const replayed = await askProgram([], write({ ...plainLaunch(null), text: '', history, results, offer }, 1).text);
    const said = read(await decoder(), [replayed.stdout]).map((event) =>
      event.type === 'text-delta' ? event.text : '',
    );
    expect(said.join('')).toBe('The result of weather is: windy');
  });

  it('repeats the number of the turn in each line of its answer', async () => {
    const { write } = (await programVersion()).protocol().writer;
    const { text } = write({ ...plainLaunch(null), text: 'hello', history: [] }, 7);
    const { stdout } = await askProgram(['--model', 'echo'], text);
    const said = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(said.map(({ type, turn }) => [type, turn])).toEqual([
      ['delta', 7],
      ['end', 7],
    ]);
  });
});

describe('The demo decoder', () => {
  const stdout = lines({ type: 'delta', text: 'Hé ' }, { type: 'delta', text: '🦄\n' }, end);
  const events: readonly DecoderEvent[] = [
    { type: 'text-delta', text: 'Hé ' },
    { type: 'text-delta', text: '🦄\n' },
    turnEnd,
  ];

  it.each([1, 2, 3, 7, 50, 1000])('reads lines that are split every %d characters', async (size) => {
    const chunks = Array.from({ length: Math.ceil(stdout.length / size) }, (_, at) =>
      stdout.slice(at * size, (at + 1) * size),
    );
    expect(read(await decoder(), chunks)).toEqual(events);
  });

  it('yields each event as soon as its line is complete', async () => {
    const one = await decoder();
    expect(read(one, ['{"type":"delta",'])).toEqual([]);
    expect(read(one, ['"text":"a"}\n{"type"'])).toEqual([{ type: 'text-delta', text: 'a' }]);
  });

  it('reads one turn after another', async () => {
    expect(read(await decoder(), [stdout, stdout])).toEqual([...events, ...events]);
  });

  it.each([
    ['a type it does not know', lines({ type: 'models', models: [] })],
    ['no JSON', 'hello\n\n'],
    ['no object', 'null\n[]\n1\n'],
    ['a delta without its text', lines({ type: 'delta' })],
    ['a negative count', lines({ ...end, usage: { input_tokens: -1, output_tokens: 0 } })],
  ])('skips a line that has %s', async (_, noise) => {
    expect(read(await decoder(), [noise, stdout])).toEqual(events);
  });

  const weather = { type: 'call', id: '1', name: 'weather', input: { city: 'Bonn' } };
  const cook = { type: 'call', id: '2', name: 'cook', input: {} };

  it('reads calls, and ends the turn with all of them', async () => {
    const one = await decoder();
    one.begin?.(1);
    const calls = [
      { id: '1', name: 'weather', input: '{"city":"Bonn"}' },
      { id: '2', name: 'cook', input: '{}' },
    ];
    expect(read(one, [lines(weather, cook, end)])).toEqual([
      { type: 'call-start', id: '1', name: 'weather' },
      { type: 'call-delta', text: '{"city":"Bonn"}' },
      { type: 'call-start', id: '2', name: 'cook' },
      { type: 'call-delta', text: '{}' },
      { ...turnEnd, calls },
    ]);
    one.begin?.(2);
    expect(read(one, [stdout])).toEqual(events);
  });

  it('does not confuse a call of an earlier turn with one of the next', async () => {
    const one = await decoder();
    one.begin?.(1);
    read(one, [lines(weather, { type: 'error', reason: 'other', message: 'x' })]);
    one.begin?.(2);
    expect(read(one, [lines({ ...cook, turn: 1 }, end)])).toEqual([{ type: 'stray' }, turnEnd]);
  });

  it('treats a line of another turn as a stray', async () => {
    const one = await decoder();
    one.begin?.(2);
    const late = lines({ type: 'delta', text: 'late', turn: 1 }, { ...end, turn: 1 });
    const own = lines({ type: 'delta', text: 'a', turn: 2 }, { ...end, turn: 2 });
    const stray: TurnEvent = { type: 'stray' };
    expect(read(one, [late, own])).toEqual([stray, stray, { type: 'text-delta', text: 'a' }, turnEnd]);
  });

  it('ends the turn on an error, with its reason if known', async () => {
    const failed = lines(
      { type: 'error', reason: 'model_unknown', message: 'no such model' },
      { type: 'error', reason: 'moon', message: 'full' },
    );
    expect(read(await decoder(), [failed])).toEqual([
      { type: 'turn-failed', reason: 'model_unknown', message: 'no such model' },
      { type: 'turn-failed', reason: 'other', message: 'full' },
    ]);
  });

  it('fails a turn if the program is killed before its end', async () => {
    const one = await decoder();
    read(one, [lines({ type: 'delta', text: 'Once ' }), '{"type":"del']);
    const message = 'the model CLI was ended by SIGKILL';
    expect([...one.exit(killed)]).toEqual([{ type: 'turn-failed', reason: 'crashed', message }]);
  });

  it('names the exit code of a program that exited by itself', async () => {
    const [event] = (await decoder()).exit({ code: 3, signal: null, stderr: '' });
    expect(event).toMatchObject({ reason: 'crashed', message: expect.stringContaining('exited with code 3') });
  });

  it('accepts a last line without a newline', async () => {
    const one = await decoder();
    read(one, [stdout.trimEnd()]);
    expect([...one.exit({ code: 0, signal: null, stderr: '' })]).toEqual([turnEnd]);
  });
});
