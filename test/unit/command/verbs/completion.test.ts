import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { commands } from '../../../../src/command/command-line.js';
import { bashCompletion, fishCompletion, zshCompletion } from '../../../../src/command/verbs/completion.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { describeWith } from '../../../support/basics/needs.js';
import { commandProgram } from '../../../support/clients/command.js';

const run = promisify(execFile);
const all = commands.map(({ name }) => name);

/** Returns what bash would offer for the last of these words. */
async function offered(words: readonly string[], folder = '/'): Promise<string[]> {
  const script = [
    ...bashCompletion(commands),
    'compopt() { :; }', // exists only while a completion runs
    `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`,
    `COMP_CWORD=${words.length - 1}`,
    '_prompt_relay',
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ].join('\n');
  const { stdout } = await run('bash', ['--norc', '-c', script], { cwd: folder });
  return stdout.split('\n').filter((word) => word !== '');
}

describe('The completion of bash', () => {
  it('offers every command, and the flags of each', async () => {
    expect(await offered(['prompt-relay', ''])).toEqual([...all, 'help']);
    for (const { name, flags } of commands) {
      const names = Object.keys(flags).map((flag) => `--${flag}`);
      expect(await offered(['prompt-relay', name, '--'])).toEqual(['--help', ...names]);
    }
  });

  it.each([
    ['sta', ['status']],
    ['ask --eff', ['--effort']],
    ['ask --effort ', ['low', 'medium', 'high', 'xhigh', 'max']],
    ['serve --cli d', ['demo']],
    ['keys ', ['add', 'revoke', 'rotate', 'budget', 'import', 'list', 'check', 'new', 'lend']],
    ['completion z', ['zsh']],
    ['help rec', ['recheck']],
    ['ask -m ', []],
    ['chat --url -', []],
  ])('completes %j to %j', async (line, completed) => {
    expect(await offered(['prompt-relay', ...line.split(' ')])).toEqual(completed);
  });

  it('offers files if a flag takes one, including names with spaces', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'my chart.png'), '');
    expect(await offered(['prompt-relay', 'ask', '-i', 'my'], folder.path)).toEqual(['my chart.png']);
  });
});

describeWith('/usr/bin/zsh')('The completion of zsh', () => {
  it('is a function that zsh accepts, and that contains every flag', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, '_prompt-relay');
    const lines = zshCompletion(commands);
    await writeFile(file, `${lines.join('\n')}\n`);
    await run('zsh', ['-fn', file]);
    // Stand-ins for the builtins of a line editor make the words of each command visible.
    const script = [
      'compdef() { :; }',
      '_describe() { print -l -- $commands; }',
      '_arguments() { print -l -- "$@"; }',
      `source ${file}`,
      'words=(prompt-relay ""); CURRENT=2; _prompt_relay',
      ...all.map((name) => `words=(prompt-relay ${name} ""); CURRENT=3; _prompt_relay`),
    ].join('\n');
    const { stdout } = await run('zsh', ['-fc', script]);
    for (const { name, summary, flags } of commands) {
      expect(stdout).toContain(`${name}:${summary}`);
      for (const flag of Object.keys(flags)) expect(stdout).toContain(`--${flag}`);
    }
  });
});

describeWith('/usr/bin/fish')('The completion of fish', () => {
  it.each([
    ['prompt-relay sta', ['status']],
    ['prompt-relay ask --eff', ['--effort']],
    ['prompt-relay ask --effort ', ['high', 'low', 'max', 'medium', 'xhigh']],
    ['prompt-relay completion z', ['zsh']],
  ])('completes "%s"', async (line, completed) => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'prompt-relay.fish');
    await writeFile(file, `${fishCompletion(commands).join('\n')}\n`);
    const env = { PATH: process.env.PATH, HOME: folder.path, XDG_CONFIG_HOME: folder.path, XDG_DATA_HOME: folder.path };
    const { stdout } = await run('fish', ['--no-config', '-c', `source ${file}; complete -C '${line}'`], { env });
    const words = stdout.split('\n').flatMap((row) => row.split('\t')[0] || []);
    expect(words.toSorted()).toEqual(completed);
  });
});

it('The command prints everything before it exits, also to a program that reads late', async () => {
  const printed: Buffer[] = [];
  const child = spawn(process.execPath, [commandProgram, 'completion', 'zsh'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.on('data', (piece: Buffer) => printed.push(piece));
  const ended = [once(child, 'exit'), once(child.stdout, 'end')];
  spawnSync('sleep', ['1.5']); // meanwhile this process reads nothing, and each line fills the socket further
  await Promise.all(ended);
  expect(Buffer.concat(printed).toString()).toBe(`${zshCompletion(commands).join('\n')}\n`);
});
