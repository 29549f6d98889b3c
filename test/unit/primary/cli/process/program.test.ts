import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import {
  type Adapter,
  type Consult,
  type LaunchOptions,
  plainLaunch,
} from '../../../../../src/primary/cli/contract/adapter.js';
import {
  CliProgram,
  type FoundProgram,
  findProgram,
  launchKeyOf,
} from '../../../../../src/primary/cli/process/program.js';
import { lineVersion } from '../../../../support/agents/scripted-cli.js';
import { type TemporaryFolder, temporaryFolder } from '../../../../support/basics/folder.js';

let folder: TemporaryFolder;
let path: string;

beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder.path, 'model');
  await writeFile(path, 'one', { mode: 0o755 });
});
afterEach(() => folder[Symbol.asyncDispose]());

function fingerprintOf(found: FoundProgram): string {
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.fingerprint;
}

describe('A program', () => {
  it('is found along PATH, or by its path', async () => {
    const found = { kind: 'found', path };
    expect(await findProgram('model', `/nowhere:${folder.path}:/bin`)).toMatchObject(found);
    expect(await findProgram(path, '/nowhere')).toMatchObject(found);
    // Absolute: the program runs in another folder.
    expect(await findProgram(relative(process.cwd(), path), '/nowhere')).toMatchObject(found);
  });

  it('is the first along PATH that may be executed', async () => {
    const other = join(folder.path, 'other');
    await mkdir(other);
    await writeFile(join(other, 'model'), '', { mode: 0o644 });
    expect(await findProgram('model', `${other}:${folder.path}`)).toMatchObject({ kind: 'found', path });
    expect(await findProgram('model', other)).toEqual({ kind: 'not-executable' });
  });

  it('is missing if there is no file of its name: a folder or a broken link does not count', async () => {
    await mkdir(join(folder.path, 'folder'));
    await symlink('/no/such/file', join(folder.path, 'link'));
    for (const name of ['none', 'folder', 'link', './none']) {
      expect(await findProgram(name, folder.path)).toEqual({ kind: 'missing' });
    }
  });

  it('has another fingerprint when its file has changed', async () => {
    const before = fingerprintOf(await findProgram('model', folder.path));
    expect(fingerprintOf(await findProgram('model', folder.path))).toBe(before);
    await writeFile(path, 'another one');
    const after = fingerprintOf(await findProgram('model', folder.path));
    expect(after).not.toBe(before);
    await chmod(path, 0o644);
    expect(await findProgram('model', folder.path, after)).toEqual({ kind: 'not-executable' });
  });
});

describe('The key of a launch', () => {
  const launch: LaunchOptions = { ...plainLaunch('a'), system: 'Be brief.' };

  it('represents the file of the program, its arguments and its files', () => {
    const programVersion = lineVersion();
    const program = { path, leading: [], programVersion, fingerprint: 'v1', keys: new WeakMap() };
    const key = launchKeyOf(program, launch);
    expect(launchKeyOf({ ...program, keys: new WeakMap() }, { ...launch })).toBe(key);
    expect(launchKeyOf({ ...program, fingerprint: 'v2', keys: new WeakMap() }, launch)).not.toBe(key);
    expect(launchKeyOf(program, { ...launch, model: 'b' })).not.toBe(key);
    expect(launchKeyOf(program, { ...launch, system: 'Be long.' })).not.toBe(key);
  });

  it('is the same for launches that start the program in the same way', () => {
    const programVersion = { ...lineVersion(), plan: () => ({ args: ['--print'], files: [] }) };
    const program = { path, leading: [], programVersion, fingerprint: 'v1', keys: new WeakMap() };
    expect(launchKeyOf(program, launch)).toBe(launchKeyOf(program, plainLaunch('b')));
  });

  it('is short, and computed once for a launch, however long its system text is', () => {
    let plans = 0;
    const { plan } = lineVersion();
    const programVersion = {
      ...lineVersion(),
      plan: (...args: Parameters<typeof plan>) => {
        plans++;
        return plan(...args);
      },
    };
    const program = { path, leading: [], programVersion, fingerprint: 'v1', keys: new WeakMap() };
    const long = { ...plainLaunch(null), system: 'x'.repeat(1_000_000) };
    const keys = new Set([launchKeyOf(program, long), launchKeyOf(program, long), launchKeyOf({ ...program }, long)]);
    expect([keys.size, plans]).toEqual([1, 1]);
    expect([...keys][0]?.length).toBeLessThan(100);
  });
});

describe('what is known of the model CLI', () => {
  /** Adapter that only asks the program for its version. */
  const adapter: Adapter = {
    name: 'test',
    command: ['model', '--lead'],
    credentialVariable: null,
    env: {},
    models: null,
    learn: async (consult) => {
      const { stdout } = await consult(['--version']);
      const list = async (ask: Consult) => [{ id: (await ask(['models'], 'all')).stdout, name: 'm', default: true }];
      const check = async (ask: Consult) => ((await ask(['check'])).code === 0 ? null : 'not logged in');
      return { ...lineVersion(), version: stdout, isProvisional: stdout === 'busy', listModels: list, check };
    },
  };

  function program() {
    const asked: (readonly string[])[] = [];
    const answers = { code: 0 as number | null, stdout: '1.0.0', fault: null as Error | null };
    const known = new CliProgram(adapter, folder.path, async (at, args, input = '') => {
      asked.push([at, ...args, input]);
      if (answers.fault !== null) throw answers.fault;
      return { code: answers.code, stdout: answers.stdout };
    });
    return { known, asked, answers };
  }

  it('is learned once for each file, however many callers need it at once', async () => {
    const { known, asked } = program();
    expect(known.version).toBeNull();
    const found = await Promise.all([known.findProgram(), known.findProgram(), known.findProgram()]);
    expect(found[0]).toMatchObject({ path, leading: ['--lead'] });
    expect(new Set(found.map(({ programVersion }) => programVersion)).size).toBe(1);
    await known.findProgram();
    expect([asked, known.version]).toEqual([[[path, '--lead', '--version', '']], '1.0.0']);
  });

  it('is learned anew when the file has changed', async () => {
    const { known, asked, answers } = program();
    const before = await known.findProgram();
    answers.stdout = '2.0.0';
    await writeFile(path, 'a newer one');
    const after = await known.findProgram();
    expect([asked.length, known.version]).toEqual([2, '2.0.0']);
    expect(after.fingerprint).not.toBe(before.fingerprint);
  });

  it('is learned anew if it could not be learned, because the next attempt may succeed', async () => {
    const { known, asked, answers } = program();
    answers.fault = new Error('not now');
    await expect(known.findProgram()).rejects.toThrow('not now');
    answers.fault = null;
    await known.findProgram();
    expect([asked.length, known.version]).toEqual([2, '1.0.0']);
  });

  it('is learned anew at the next check if it was incomplete', async () => {
    const { known, asked, answers } = program();
    answers.stdout = 'busy';
    await known.findProgram();
    await known.findProgram();
    answers.stdout = '1.0.0';
    await known.checkReadiness();
    await known.checkReadiness();
    expect(asked.filter(([, , first]) => first === '--version')).toHaveLength(2);
    expect(known.version).toBe('1.0.0');
  });

  it('is missing if the program cannot be started, with the reason but without its path', async () => {
    const { known } = program();
    await chmod(path, 0o644);
    const message = (why: string) => ({ code: 'spawn_error', message: `the model CLI model ${why}` });
    await expect(known.findProgram()).rejects.toMatchObject(
      message('may not be executed by the service (MODEL_API_CLI_COMMAND)'),
    );
    await rm(path);
    await expect(known.findProgram()).rejects.toMatchObject(
      message('is not installed on this host (MODEL_API_CLI, MODEL_API_CLI_COMMAND)'),
    );
    await expect(known.checkReadiness()).rejects.toMatchObject({ code: 'spawn_error' });
    await expect(known.listModels()).rejects.toMatchObject({ code: 'spawn_error' });
  });

  it('includes whether jobs can run now', async () => {
    const { known, asked, answers } = program();
    expect(await known.checkReadiness()).toEqual({ version: '1.0.0', error: null });
    answers.code = 1;
    expect(await known.checkReadiness()).toEqual({ version: '1.0.0', error: 'not logged in' });
    expect(asked.slice(1)).toEqual(Array.from({ length: 2 }, () => [path, '--lead', 'check', '']));
  });

  it('is learned anew at a check if a launcher starts another program, whose processes differ', async () => {
    const { known, asked, answers } = program();
    await known.checkReadiness('start');
    const before = await known.findProgram();
    await known.checkReadiness('interval');
    expect((await known.findProgram()).programVersion).toBe(before.programVersion);
    answers.stdout = '2.0.0';
    for (const trigger of ['forced', 'interval', 'failure'] as const) {
      answers.stdout += '.1';
      expect(await known.checkReadiness(trigger)).toEqual({ version: answers.stdout, error: null });
    }
    const after = await known.findProgram();
    expect(after.fingerprint).toBe(before.fingerprint);
    expect(launchKeyOf(after, plainLaunch(null))).not.toBe(launchKeyOf(before, plainLaunch(null)));
    expect(asked.filter(([, , first]) => first === '--version')).toHaveLength(1 + 1 + 3 * 2);
  });

  it('is missing if the interpreter of the program is missing, and the message has no path', async () => {
    await writeFile(path, '#!/opt/none/bin/python9\n');
    const { known, asked } = program();
    const message = "the model CLI model can't be started: its interpreter python9 is missing";
    for (const attempt of [known.findProgram(), known.checkReadiness(), known.findProgram()])
      await expect(attempt).rejects.toMatchObject({ code: 'spawn_error', message });
    expect(asked).toEqual([]);
    await writeFile(path, '#!/bin/sh\n');
    expect((await known.findProgram()).path).toBe(path);
  });

  it('needs one version query at the start, and none for a job', async () => {
    const { known, asked } = program();
    await Promise.all([known.findProgram(), known.checkReadiness('start')]);
    await known.findProgram();
    await known.findProgram();
    expect(asked.map(([, , first]) => first)).toEqual(['--version', 'check']);
  });

  it('is retained if the program does not answer now', async () => {
    const { known, answers } = program();
    const before = await known.findProgram();
    answers.fault = new Error('too busy');
    await known.checkReadiness('forced').catch(() => {});
    answers.fault = null;
    expect((await known.findProgram()).programVersion).toBe(before.programVersion);
  });

  it('is learned anew only by a check of the operator if the adapter consults with more than arguments', async () => {
    let learned = 0;
    const learn: Adapter['learn'] = async (consult) => {
      learned++;
      await consult([], 'hello');
      return { ...lineVersion(), check: async () => null };
    };
    const known = new CliProgram({ ...adapter, learn }, folder.path, async () => ({ code: 0, stdout: '' }));
    for (const trigger of ['start', 'interval', 'failure'] as const) await known.checkReadiness(trigger);
    expect(learned).toBe(1);
    await known.checkReadiness('forced');
    expect(learned).toBe(2);
  });

  it('includes which models it can use', async () => {
    const { known, asked } = program();
    expect(await known.listModels()).toEqual([{ id: '1.0.0', name: 'm', default: true }]);
    expect(asked.at(-1)).toEqual([path, '--lead', 'models', 'all']);
  });
});
