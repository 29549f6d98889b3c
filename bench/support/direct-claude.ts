import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Dialect } from '../../src/primary/cli/adapter.js';
import { claudeAdapter } from '../../src/primary/cli/adapters/claude.js';
import { type ClaudeHome, consultIn } from '../../test/support/claude-session.js';
import { prompt } from './task.js';

export interface DirectRun {
  /** From the start to the first byte of its output, milliseconds. */
  readonly firstByteMs: number;
  /** From the start to its result, milliseconds; it may take its time to exit. */
  readonly resultMs: number;
}

/** `claude -p` as the relay would start it, started by hand for one prompt on its stdin. */
export class DirectClaude {
  readonly #program: string;
  readonly #home: ClaudeHome;
  readonly #env: Readonly<Record<string, string>>;
  readonly #dialect: Dialect;
  #runs = 0;

  static async find(program: string, home: ClaudeHome, env: Readonly<Record<string, string>>): Promise<DirectClaude> {
    const adapter = claudeAdapter([program], { extraArgs: [] });
    const dialect = await adapter.inspect(consultIn(home, program));
    return new DirectClaude(program, home, home.environment({ ...adapter.env, ...env }), dialect);
  }

  private constructor(program: string, home: ClaudeHome, env: Readonly<Record<string, string>>, dialect: Dialect) {
    this.#program = program;
    this.#home = home;
    this.#env = env;
    this.#dialect = dialect;
  }

  async run(): Promise<DirectRun> {
    const { args, files } = this.#dialect.plan({ model: null, system: null }, `${this.#home.path}/${++this.#runs}`);
    for (const { path, text } of files) await writeFile(path, text, { mode: 0o600 });
    const begun = performance.now();
    const child = spawn(this.#program, [...args], { cwd: this.#home.workingDirectory, env: this.#env });
    const exited = once(child, 'exit');
    child.stderr.resume();
    child.stdin.end(this.#dialect.write({ text: prompt, system: null, history: [] }).text);
    const firstByte = once(child.stdout, 'data').then(() => performance.now() - begun);
    const resultMs = await untilResult(child.stdout).then(() => performance.now() - begun);
    await exited;
    for (const { path } of files) await rm(path);
    return { firstByteMs: await firstByte, resultMs };
  }
}

async function untilResult(stdout: NodeJS.ReadableStream): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: stdout })
      .on('line', (line) => line.includes('"type":"result"') && resolve())
      .on('close', () => reject(new Error('claude ended without a result')));
  });
}
