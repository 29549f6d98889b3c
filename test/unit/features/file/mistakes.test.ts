import { fileAdapter } from '../../../../src/features/file/adapter.js';
import { type Consult, type Protocol, plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';
import { RelayError } from '../../../../src/shared/errors.js';
import {
  adapterWith,
  consult,
  failureOf,
  faultOf,
  ofExample,
  options,
  silent,
  versionWith,
} from '../../../support/agents/adapter-files.js';

describe('A faulty adapter in a file', () => {
  it('survives functions that wrongly return promises, and unhandled rejections', async () => {
    const late = async () => JSON.parse('{');
    const parts = { protocol: silent({ writer: { write: late }, decoder: { read: late, exit: late, begin: late } }) };
    const exit = { code: 0, signal: null, stderr: '' };
    for (const act of [
      ({ decoder }: Protocol) => decoder.read('x'),
      ({ decoder }: Protocol) => decoder.exit(exit),
      ({ decoder }: Protocol) => decoder.begin?.(1),
      ({ writer }: Protocol) => writer.write({ ...plainLaunch(null), text: 'Hi', history: [] }, 1),
    ]) {
      const { stderr } = await failureOf(parts, (programVersion) => act(programVersion.protocol()));
      expect(stderr).toContain('it must return its value, not a promise');
    }
    expect(faultOf({ createAdapter: late })).toContain('must return an adapter');
    for (const learn of [late, async () => ({ ...(await ofExample()), plan: late })]) {
      await expect(fileAdapter(adapterWith({ learn }), options).learn(consult)).rejects.toThrow('jay failed: ');
    }
  });

  it('may forget to await a consultation, but isEnough may not return a promise', async () => {
    const failing: Consult = async (_args, _input, isEnough) => {
      isEnough?.('x');
      throw new RelayError('spawn_error', 'gone');
    };
    const forgetting = async (ask: Consult) => {
      void ask(['--version']);
      return ofExample();
    };
    const adapter = fileAdapter(adapterWith({ learn: forgetting }), options);
    expect((await adapter.learn(failing)).version).toBe('0.3.1');
    const promising = (ask: Consult) => ask([], '', (async () => JSON.parse('{')) as never);
    const learned = fileAdapter(adapterWith({ learn: promising }), options).learn(failing);
    await expect(learned).rejects.toThrow('it must return its value, not a promise');
  });

  it.each<[string, unknown, string]>([
    ['nothing', null, 'null'],
    ['a text', 'no such flag', 'no such flag'],
  ])('reports the thrown value if that is %s', async (_, thrown, words) => {
    const fail = () => {
      throw thrown;
    };
    const learned = fileAdapter(adapterWith({ learn: async () => fail() }), options).learn(consult);
    const programVersion = await versionWith({ check: fail, listModels: async () => fail() });
    for (const asked of [learned, programVersion.check(consult), programVersion.listModels(consult)]) {
      await expect(asked).rejects.toMatchObject({ code: 'cli_error', message: `the adapter jay failed: ${words}` });
    }
  });

  it('is also guarded in its extras', async () => {
    const schema = () => JSON.parse('{');
    const error = await failureOf({ extras: { schema, image: async () => schema() } }, (d) => d.extras.schema?.('{}'));
    expect(error).toMatchObject({ code: 'cli_error', message: 'the adapter jay failed' });
    const { extras } = await versionWith({
      extras: {
        high: 'x',
        effort() {
          return this.high;
        },
      },
    });
    expect([extras.image, extras.effort?.('high')]).toEqual([undefined, 'x']);
  });
});
