import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { acpAdapter } from '../../src/features/acp/adapter.js';
import { presets } from '../../src/features/acp/presets.js';
import { installGemini } from '../../test/support/agents/gemini-service.js';
import { temporaryFolder } from '../../test/support/basics/folder.js';
import { prompt } from './task.js';

type Variables = Readonly<Record<string, string>>;

/** Starts gemini directly, without the relay, in a private HOME. */
export class DirectGemini implements AsyncDisposable {
  readonly #program: readonly [node: string, program: string];
  readonly #folder: Awaited<ReturnType<typeof temporaryFolder>>;
  readonly #given: Variables;
  readonly #relays: Variables;

  /** Creates the HOME. `given` has the credential and the address of the API. */
  static async make(given: Variables): Promise<DirectGemini> {
    const program = await installGemini();
    const folder = await temporaryFolder();
    const options = { extraArgs: [], givenVariables: given, homeFiles: [], mayHaveTools: true };
    const { home, env } = acpAdapter('gemini', presets.gemini, program, options);
    for (const { path, text } of home?.files ?? []) await put(join(folder.path, 'relay', path), text);
    const typed = JSON.stringify({ security: { auth: { selectedType: 'gemini-api-key' } } });
    await put(join(folder.path, 'typed', '.gemini', 'settings.json'), typed);
    await mkdir(join(folder.path, 'work'));
    return new DirectGemini(program, folder, given, env);
  }

  private constructor(
    program: readonly [string, string],
    folder: Awaited<ReturnType<typeof temporaryFolder>>,
    given: Variables,
    relays: Variables,
  ) {
    this.#program = program;
    this.#folder = folder;
    this.#given = given;
    this.#relays = relays;
  }

  /**
   * Runs `gemini -p` with the settings and the environment of the relay. Resolves with the milliseconds until the
   * answer.
   */
  run(): Promise<number> {
    return this.#timed('relay', this.#relays);
  }

  /**
   * Runs `gemini -p "…"` with its default settings, as users type it, and with a fixed model, which saves the choice of
   * one.
   */
  runAsTyped(): Promise<number> {
    return this.#timed('typed', { GEMINI_MODEL: 'flash' });
  }

  async #timed(home: 'relay' | 'typed', more: Variables): Promise<number> {
    const { path } = this.#folder;
    const env = { PATH: process.env.PATH ?? '', ...this.#given, ...more, HOME: join(path, home) };
    const [node, program] = this.#program;
    const begun = performance.now();
    const child = spawn(node, [program, '--skip-trust', '-p', prompt], { cwd: join(path, 'work'), env });
    const exited = once(child, 'exit');
    child.stdin.end();
    child.stderr.resume();
    await once(child.stdout, 'data');
    const answeredMs = performance.now() - begun;
    const [code] = await exited;
    if (code !== 0) throw new Error(`gemini -p exited with ${code}`);
    return answeredMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder[Symbol.asyncDispose]();
  }
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
