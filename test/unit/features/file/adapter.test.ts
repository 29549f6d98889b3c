import { fileAdapter } from '../../../../src/features/file/adapter.js';
import {
  LineTooLong,
  type ProgramVersion,
  plainLaunch,
  unknownUsage,
} from '../../../../src/primary/cli/contract/adapter.js';
import { RelayError } from '../../../../src/shared/errors.js';
import {
  adapterWith,
  consult,
  example,
  failureOf,
  faultOf,
  ofExample,
  options,
  silent,
  versionWith,
} from '../../../support/agents/adapter-files.js';

describe('An adapter in a file', () => {
  it('is created by the file from its options, in either kind of module', async () => {
    for (const module of [example, { default: example }]) {
      const adapter = fileAdapter(module, options);
      expect(adapter).toMatchObject({ name: 'jay', command: ['node', 'jay.cjs'], models: null });
      const programVersion = await adapter.learn(consult);
      expect(programVersion.version).toBe('0.3.1');
      expect(programVersion.plan(plainLaunch('a'), '/private/system')).toEqual({ args: ['--mood=merry'], files: [] });
      expect(await programVersion.check(consult)).toBeNull();
      expect(await programVersion.listModels(consult)).toMatchObject([{ id: 'a', default: true }, { id: 'b' }]);
    }
  });

  it('reads and writes as the file defines', async () => {
    const { writer, decoder, opening } = (await versionWith()).protocol();
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
    expect([decoder.hasBegun, decoder.isMidAnswer]).toEqual([true, undefined]);
    expect([...decoder.exit({ code: 3, signal: null, stderr: '' })]).toMatchObject([{ reason: 'crashed' }]);
  });

  it('passes on the thoughts of the model', async () => {
    const told = [
      { type: 'thought-delta', text: 'Hm' },
      { type: 'thought-end', signature: 'proof' },
      { type: 'thought-end', redacted: 'sealed' },
      { type: 'thought-end' },
    ];
    const { protocol } = await versionWith({ protocol: silent({ decoder: { read: () => told } }) });
    expect([...protocol().decoder.read('')]).toEqual(told);
    const wrong = () => [{ type: 'thought-delta', text: 7 }];
    const act = (programVersion: ProgramVersion) => [...programVersion.protocol().decoder.read('')];
    expect(await failureOf({ protocol: silent({ decoder: { read: wrong } }) }, act)).toBeInstanceOf(RelayError);
  });

  it('may consist of classes and of frozen objects', async () => {
    class Reader {
      #lines = 0;
      get hasBegun() {
        return this.#lines > 0;
      }
      read() {
        this.#lines++;
        return [{ type: 'text-delta', text: `${this.#lines}` }];
      }
      exit() {
        return [];
      }
    }
    const version = { ...(await ofExample()), protocol: silent({}) };
    const made = () => Object.freeze({ ...version.protocol(), decoder: Object.freeze(new Reader()) });
    const { decoder } = (await versionWith({ ...version, protocol: made })).protocol();
    expect(decoder.hasBegun).toBe(false);
    expect([...decoder.read('x'), ...decoder.read('y')]).toMatchObject([{ text: '1' }, { text: '2' }]);
    expect(decoder.hasBegun).toBe(true);
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
  ])('is refused with the reason if it %s', (_, module, fault) => {
    expect(faultOf(module)).toContain(fault);
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['throws', () => Promise.reject(new Error('no such flag')), 'the adapter jay failed: no such flag'],
    ['has no protocol', async () => ({ ...(await versionWith()), protocol: 1 }), 'protocol: must be a function'],
    ['plans nothing', async () => ({ ...(await ofExample()), plan: () => [] }), 'plan() must return a plan: '],
    [
      'says nothing',
      async () => ({ ...(await ofExample()), protocol: () => ({}) }),
      'protocol() must return a protocol',
    ],
  ])('fails to learn if learn() %s', async (_, learn, message) => {
    const learned = fileAdapter(adapterWith({ learn }), options).learn(consult);
    await expect(learned).rejects.toMatchObject({ code: 'cli_error', reason: 'other' });
    await expect(learned).rejects.toThrow(message);
  });

  it.each<[string, object, (programVersion: ProgramVersion) => unknown]>([
    [
      'an event that is none',
      { decoder: { read: () => [{ type: 'delta' }] } },
      (programVersion) => programVersion.protocol().decoder.read('x'),
    ],
    [
      'what is no list',
      { decoder: { read: () => ({ type: 'text-delta', text: 'x' }) } },
      (programVersion) => programVersion.protocol().decoder.read('x'),
    ],
    [
      'its events later',
      {
        decoder: {
          async *read() {
            yield { type: 'text-delta', text: 'x' };
          },
        },
      },
      (programVersion) => programVersion.protocol().decoder.read('x'),
    ],
    [
      'an end without its usage',
      { decoder: { exit: () => [{ type: 'turn-end', text: null, model: null }] } },
      (programVersion) => programVersion.protocol().decoder.exit({ code: 0, signal: null, stderr: '' }),
    ],
    [
      'no input for a turn',
      { writer: { write: () => 'Hi' } },
      (programVersion) => programVersion.protocol().writer.write({ ...plainLaunch(null), text: 'Hi', history: [] }, 1),
    ],
  ])('fails as a model CLI, not as the service, if it yields %s', async (_, protocol, act) => {
    const error = await failureOf({ protocol: silent(protocol) }, act);
    expect(error).toMatchObject({ code: 'cli_error', reason: 'other', message: 'the adapter jay failed' });
    expect(error.stderr).toContain('it yields an invalid value: ');
  });

  it('has its error texts only in the log, and passes on errors of the service', async () => {
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
      const seen = await failureOf({ protocol: silent({ decoder: { read } }) }, (programVersion) =>
        programVersion.protocol().decoder.read('x'),
      );
      const isOurs = error instanceof RelayError || error instanceof LineTooLong;
      expect(seen === error).toBe(isOurs);
      if (!isOurs)
        expect([seen.message, seen.stderr]).toEqual(['the adapter jay failed', expect.stringContaining('secret')]);
    }
  });

  it('is also checked when it reports its state and its models', async () => {
    const programVersion = await versionWith({ check: async () => true, listModels: async () => [{ id: 'a' }] });
    for (const asked of [programVersion.check(consult), programVersion.listModels(consult)]) {
      await expect(asked).rejects.toMatchObject({ code: 'cli_error', reason: 'other' });
      await expect(asked).rejects.toThrow('the adapter jay failed: it yields an invalid value: ');
    }
  });

  it('may yield all other valid events', async () => {
    const events = [
      { type: 'input-taken' },
      { type: 'turn-end', text: 'x', model: 'm', usage: unknownUsage },
      { type: 'turn-failed', reason: 'quota', message: 'later', quota: { scope: 'account', resetsAt: null } },
      { type: 'turn-failed', reason: 'auth', message: 'no', scope: 'account' },
      { type: 'text-ignored' },
      { type: 'quota-report', windows: [{ name: 'other', status: 'allowed', utilization: 0.5, resetsAt: null }] },
    ];
    const programVersion = await versionWith({ protocol: silent({ decoder: { read: () => events } }) });
    expect(programVersion.protocol().decoder.read('x')).toEqual(events);
  });
});
