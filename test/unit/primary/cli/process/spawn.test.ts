import { readFile } from 'node:fs/promises';
import type { ExitClass } from '../../../../../src/primary/cli/contract/observer.js';
import {
  couldNotExecute,
  type ProgramStart,
  spawnError,
  spawnProgram,
} from '../../../../../src/primary/cli/process/launcher.js';
import type { Child, Containment } from '../../../../../src/primary/cli/terminate/containment.js';
import { silentObserver } from '../../../../support/agents/scripted-cli.js';
import { temporaryFolder } from '../../../../support/basics/folder.js';

/** Containment without processes. */
const noContainment: Containment = {
  enter: (program, args) => [program, args],
  pids: async () => [],
  isQuiet: async () => true,
  clear: async () => ({ killed: 0, left: [] }),
  usage: () => null,
};

const children: Child[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    await child.exited;
  }
});

async function spawned(start: Partial<ProgramStart>, containment = noContainment) {
  const exits: ExitClass[] = [];
  const observer = { ...silentObserver, exited: (kind: ExitClass) => exits.push(kind) };
  const whole = { program: '/bin/sh', args: [], env: {}, workingDirectory: '/', cookie: 'cookie', ...start };
  const child = await spawnProgram(whole, containment, observer).catch((error: unknown) => {
    throw Object.assign(error as Error, { exits });
  });
  children.push(child);
  return { child, exits };
}

async function stdoutOf(child: Child): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

describe('A program that is started', () => {
  it('has exactly the given environment and its cookie, which comes first', async () => {
    const { child } = await spawned({ program: '/usr/bin/env', env: { LANG: 'C', HOME: '/nowhere' } });
    expect(await stdoutOf(child)).toBe('PROMPT_RELAY_JOB=cookie\nLANG=C\nHOME=/nowhere\n');
  });

  it('leads a new process group, in the given folder', async () => {
    await using folder = await temporaryFolder();
    const { child } = await spawned({ args: ['-c', 'pwd; exec cat'], workingDirectory: folder.path });
    const stat = await readFile(`/proc/${child.pid}/stat`, 'utf8');
    const [, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    expect(Number(group)).toBe(child.pid);
    child.stdin.end('hello');
    expect(await stdoutOf(child)).toBe(`${folder.path}\nhello`);
  });

  it('is started by the command of its containment', async () => {
    const inside: Containment = { ...noContainment, enter: (program, args) => ['/bin/echo', ['in', program, ...args]] };
    const { child } = await spawned({ program: '/opt/model', args: ['--print'] }, inside);
    expect(await stdoutOf(child)).toBe('in /opt/model --print\n');
  });

  it.each<[string, ExitClass, { readonly code: number | null; readonly signal: string | null }]>([
    ['exit 0', 'ok', { code: 0, signal: null }],
    ['exit 3', 'nonzero', { code: 3, signal: null }],
    ['kill -9 $$', 'signal', { code: null, signal: 'SIGKILL' }],
  ])('reports how it exits: %s', async (script, kind, status) => {
    const { child, exits } = await spawned({ args: ['-c', script] });
    expect([await child.exited, exits]).toEqual([status, [kind]]);
  });

  it('reports its exit even if its child process holds its stdout', async () => {
    const { child } = await spawned({ args: ['-c', 'sleep 60 & exit 0'] });
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.stdout.readableEnded).toBe(false);
    process.kill(-child.pid, 'SIGKILL');
  });
});

describe('A program that cannot be started', () => {
  it.each([
    ['it is not there', { program: '/no/such/model' }, 'the model CLI model could not be started: ENOENT'],
    ['it may not be executed', { program: '/etc/passwd' }, 'the model CLI passwd could not be started: EACCES'],
    ['its folder has gone', { workingDirectory: '/no/such/folder' }, 'the model CLI sh could not be started: ENOENT'],
  ])('is an error without its path: %s', async (_, start, message) => {
    await expect(spawned(start)).rejects.toMatchObject({ code: 'spawn_error', message, exits: ['spawn_error'] });
  });

  it.each([
    ['are too long', ['x'.repeat(300_000)]],
    ['cannot be passed on', ['a\0b']],
  ])('is the fault of the request if its arguments %s', async (_, args) => {
    const message = 'the request does not fit into the arguments of the model CLI sh';
    const failure = { code: 'cli_error', reason: 'request_refused', message, exits: ['spawn_error'] };
    await expect(spawned({ args })).rejects.toMatchObject(failure);
  });

  it('is reported in the words of the system if there is no code', () => {
    expect(spawnError('/opt/secret/model', new Error('no more room')).message).toBe(
      'the model CLI model could not be started: no more room',
    );
  });

  it.each([
    [126, 'setpriv: failed to execute /opt/model: Exec format error', true],
    [127, 'setpriv: failed to execute /opt/model: No such file or directory', true],
    [126, 'prompt-relay-sh: cannot enter its cgroup', true],
    [127, 'prompt-relay-sh: 1: exec: /opt/model: not found', true],
    [1, 'setpriv: something else', false],
    [127, 'bash: line 1: claude: command not found', false],
    [127, 'it said: setpriv: no', false],
    [null, 'setpriv: killed', false],
  ])('is recognized by the exit code and the name of the helper in front: %s, %s', (code, stderr, could) => {
    expect(couldNotExecute({ code, stderr })).toBe(could);
  });
});
