import { join } from 'node:path';
import { type Dialect, plainLaunch, unknownUsage } from '../../../../src/primary/cli/adapter.js';
import { adapterKit } from '../../../../src/primary/cli/adapter-kit.js';
import { fileAdapter } from '../../../../src/primary/cli/adapters/file.js';
import { LineTooLong } from '../../../../src/primary/cli/adapters/lines.js';
import { RelayError } from '../../../../src/shared/errors.js';
import { root } from '../../../support/sources.js';

const example = require(join(root, 'docs', 'examples', 'jay-adapter.cjs'));
const options = { command: ['node', 'jay.cjs'], extraArgs: ['--mood=merry'], env: {}, kit: adapterKit };
const consult = async (args: readonly string[]) => {
  return { code: 0, stdout: args.includes('--version') ? 'jay 0.3.1\n' : '{"op":"models","models":["a","b"]}\n' };
};

/** The example, with some of its parts replaced. */
function adapterWith(parts: object): unknown {
  return { createAdapter: (given: object) => ({ ...example.createAdapter(given), ...parts }) };
}

function faultOf(module: unknown): string {
  try {
    fileAdapter(module, options);
    return 'none';
  } catch (error) {
    return (error as Error).message;
  }
}

function ofExample(): Promise<Dialect> {
  return example.createAdapter(options).learn(consult);
}

async function dialectWith(parts: object = {}): Promise<Dialect> {
  const learn = async () => ({ ...(await ofExample()), ...parts });
  return fileAdapter(adapterWith({ learn }), options).learn(consult);
}

/** A dialogue that says nothing, with some of its parts replaced. */
function silent({ writer = {}, decoder = {} }: { readonly writer?: object; readonly decoder?: object }) {
  const input = { text: '', stdin: 'end' };
  const nothing = () => [];
  return () => ({
    writer: { write: () => input, ...writer },
    decoder: { hasBegun: true, read: nothing, exit: nothing, ...decoder },
  });
}

/** What the adapter makes of a mistake in its own dialogue. */
async function failureOf(parts: object, act: (dialect: Dialect) => unknown): Promise<RelayError> {
  const dialect = await dialectWith(parts);
  try {
    act(dialect);
  } catch (error) {
    return error as RelayError;
  }
  throw new Error('nothing was thrown');
}

describe('an adapter in a file', () => {
  it('is what the file makes of its options, by either kind of module', async () => {
    for (const module of [example, { default: example }]) {
      const adapter = fileAdapter(module, options);
      expect(adapter).toMatchObject({ name: 'jay', command: ['node', 'jay.cjs'], models: null });
      const dialect = await adapter.learn(consult);
      expect(dialect.version).toBe('0.3.1');
      expect(dialect.plan(plainLaunch('a'), '/private/system')).toEqual({ args: ['--mood=merry'], files: [] });
      expect(await dialect.check(consult)).toBeNull();
      expect(await dialect.listModels(consult)).toMatchObject([{ id: 'a', default: true }, { id: 'b' }]);
    }
  });

  it('speaks as the file says', async () => {
    const { writer, decoder, opening } = (await dialectWith()).dialogue();
    expect(opening?.('/work')).toBe('{"op":"hello"}\n');
    const { text, stdin } = writer.write({ ...plainLaunch(null), text: 'Hi', history: [] }, 1);
    expect([JSON.parse(text), stdin]).toMatchObject([{ op: 'say', id: 1, past: [], text: 'Hi' }, 'keep-open']);
    decoder.begin?.(1);
    const lines = '{"op":"may-i","id":"q","what":"shell"}\n{"op":"piece","id":1,"text":"Ho"}\n{"op":"piece","id":9}\n';
    expect([...decoder.read(lines)]).toEqual([
      { type: 'request-refused', request: 'terminal' },
      { type: 'reply', text: '{"op":"no","id":"q"}\n' },
      { type: 'text-delta', text: 'Ho' },
      { type: 'stray' },
    ]);
    expect([decoder.hasBegun, decoder.isMidAnswer]).toEqual([true, false]);
    expect([...decoder.exit({ code: 3, signal: null, stderr: '' })]).toMatchObject([{ reason: 'crashed' }]);
  });

  it.each<[string, unknown, string]>([
    ['exports nothing', {}, 'must export a function createAdapter'],
    ['exports something else', { createAdapter: 'x' }, 'must export a function createAdapter'],
    ['throws', { createAdapter: () => JSON.parse('{') }, 'createAdapter() has failed: '],
    ['makes nothing', { createAdapter: () => undefined }, 'createAdapter() must return an adapter: '],
    ['promises one', { createAdapter: async () => example.createAdapter(options) }, 'must return an adapter: name: '],
    ['has an odd name', adapterWith({ name: 'Jay!' }), 'adapter: name: must be up to 32 small letters'],
    ['names no program', adapterWith({ command: [] }), 'adapter: command: '],
    ['can not learn', adapterWith({ learn: null, env: { A: 1 } }), 'env: A: Invalid input'],
    ['can not learn', adapterWith({ learn: null }), 'learn: must be a function'],
  ])('is refused with the reason where it %s', (_, module, fault) => {
    expect(faultOf(module)).toContain(fault);
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['throws', () => Promise.reject(new Error('no such flag')), 'the adapter jay has failed: no such flag'],
    ['has no dialogue', async () => ({ ...(await dialectWith()), dialogue: 1 }), 'dialogue: must be a function'],
    ['plans nothing', async () => ({ ...(await ofExample()), plan: () => [] }), 'plan() must return a plan: '],
    [
      'says nothing',
      async () => ({ ...(await ofExample()), dialogue: () => ({}) }),
      'dialogue() must return a dialogue',
    ],
  ])('fails to learn where that %s', async (_, learn, message) => {
    const learned = fileAdapter(adapterWith({ learn }), options).learn(consult);
    await expect(learned).rejects.toMatchObject({ code: 'cli_error', reason: 'other' });
    await expect(learned).rejects.toThrow(message);
  });

  it.each<[string, object, (dialect: Dialect) => unknown]>([
    [
      'an event that is none',
      { decoder: { read: () => [{ type: 'delta' }] } },
      (dialect) => dialect.dialogue().decoder.read('x'),
    ],
    [
      'an end without its usage',
      { decoder: { exit: () => [{ type: 'turn-end', text: null, model: null }] } },
      (dialect) => dialect.dialogue().decoder.exit({ code: 0, signal: null, stderr: '' }),
    ],
    [
      'no input for a turn',
      { writer: { write: () => 'Hi' } },
      (dialect) => dialect.dialogue().writer.write({ ...plainLaunch(null), text: 'Hi', history: [] }, 1),
    ],
  ])('fails as a model CLI, not as the service, where it yields %s', async (_, dialogue, act) => {
    const error = await failureOf({ dialogue: silent(dialogue) }, act);
    expect(error).toMatchObject({ code: 'cli_error', reason: 'other', message: 'the adapter jay has failed' });
    expect(error.stderr).toContain('it yields what it must not: ');
  });

  it('leaves its own words in the log, and passes on errors of the service', async () => {
    const thrown: unknown[] = [
      new TypeError('secret'),
      'secret',
      new LineTooLong('long'),
      new RelayError('timeout', 'late'),
    ];
    for (const error of thrown) {
      const read = () => {
        throw error;
      };
      const seen = await failureOf({ dialogue: silent({ decoder: { read } }) }, (dialect) =>
        dialect.dialogue().decoder.read('x'),
      );
      const isOurs = error instanceof RelayError || error instanceof LineTooLong;
      expect(seen === error).toBe(isOurs);
      if (!isOurs)
        expect([seen.message, seen.stderr]).toEqual(['the adapter jay has failed', expect.stringContaining('secret')]);
    }
  });

  it('is checked too where it tells of itself', async () => {
    const dialect = await dialectWith({ check: async () => true, listModels: async () => [{ id: 'a' }] });
    for (const asked of [dialect.check(consult), dialect.listModels(consult)]) {
      await expect(asked).rejects.toMatchObject({ code: 'cli_error', message: 'the adapter jay has failed' });
    }
  });

  it('lets all other events pass', async () => {
    const events = [
      { type: 'input-taken' },
      { type: 'turn-end', text: 'x', model: 'm', usage: unknownUsage },
      { type: 'turn-failed', reason: 'quota', message: 'later', quota: { scope: 'account', resetsAt: null } },
      { type: 'quota-report', windows: [{ name: 'other', status: 'allowed', utilization: 0.5, resetsAt: null }] },
    ];
    const dialect = await dialectWith({
      dialogue: silent({ decoder: { read: () => events } }),
    });
    expect(dialect.dialogue().decoder.read('x')).toEqual(events);
  });
});
