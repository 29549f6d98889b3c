import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, delay } from '../../shared/clock.js';
import { cookieOf, type Instance } from '../../shared/cookie.js';
import { RelayError } from '../../shared/errors.js';
import type { Consult, Launch, LaunchPlan } from './adapter.js';
import { type CliLimits, CliProcess } from './cli-process.js';
import { type CliProgram, orAborted } from './cli-program.js';
import { ProcessTree, type ProgramStart, type TreeContext } from './process-tree.js';

export interface LauncherSettings {
  readonly instance: Instance;
  /** A folder of our own, mode 0700: every process gets an empty working directory in it. */
  readonly runtimeDirectory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: CliLimits;
}

const consultLimitMs = 10_000;
const maxConsultBytes = 1024 * 1024;

/** Starts model CLI processes, each with a cookie, an empty private working directory and the allowed environment. */
export class CliLauncher {
  readonly #settings: LauncherSettings;
  readonly #context: TreeContext;
  readonly #clock: Clock;
  #serial = 0;

  constructor(settings: LauncherSettings, context: TreeContext) {
    this.#settings = settings;
    this.#context = context;
    this.#clock = context.clock;
  }

  /** Throws `spawn_error`, or the signal's reason; then nothing has been left behind. */
  async start(program: CliProgram, launch: Launch, signal: AbortSignal): Promise<CliProcess> {
    const { path, leading, dialect } = await orAborted(program.find(), signal);
    const home = this.#nextHome();
    const plan = dialect.plan(launch, home.systemPath);
    const clear = () => remove(home.workingDirectory, plan.files);
    try {
      await mkdir(home.workingDirectory, { mode: 0o700 });
      for (const file of plan.files) await writeFile(file.path, file.text, { mode: 0o600, flag: 'wx' });
      signal.throwIfAborted();
      const tree = this.#spawn({ program: path, args: [...leading, ...plan.args], env: plan.env, ...home });
      await tree.started;
      return new CliProcess(tree, dialect, this.#settings.limits, this.#clock, clear);
    } catch (error) {
      await clear();
      throw error;
    }
  }

  /** Runs the program briefly, for what it says of itself; ends its whole tree after 10 s at the latest. */
  async consult(path: string, args: readonly string[]): ReturnType<Consult> {
    const home = this.#nextHome();
    await mkdir(home.workingDirectory, { mode: 0o700 });
    try {
      return await this.#listenTo(this.#spawn({ program: path, args, env: {}, ...home }));
    } finally {
      await remove(home.workingDirectory, []);
    }
  }

  async #listenTo(tree: ProcessTree): ReturnType<Consult> {
    const { child } = tree;
    let stdout = '';
    child.stdin.on('error', () => {}).end();
    child.stderr.resume();
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < maxConsultBytes) stdout += text;
    });
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    try {
      await tree.started;
      const code = await Promise.race([closed.then(() => child.exitCode), delay(this.#clock, consultLimitMs)]);
      if (code === undefined)
        throw new RelayError('spawn_error', 'the model CLI does not answer questions about itself');
      return { code, stdout };
    } finally {
      await tree.end(0);
    }
  }

  #spawn(start: Omit<ProgramStart, 'env'> & { readonly env: Readonly<Record<string, string>> }): ProcessTree {
    return new ProcessTree({ ...start, env: { ...this.#settings.env, ...start.env } }, this.#context);
  }

  #nextHome(): Home {
    const serial = ++this.#serial;
    const workingDirectory = join(this.#settings.runtimeDirectory, String(serial));
    return {
      cookie: cookieOf(this.#settings.instance, serial),
      workingDirectory,
      systemPath: `${workingDirectory}.system`,
    };
  }
}

interface Home {
  readonly cookie: string;
  readonly workingDirectory: string;
  readonly systemPath: string;
}

/** Never rejects: what can't be removed now goes with the runtime directory. */
async function remove(workingDirectory: string, files: LaunchPlan['files']): Promise<void> {
  await rmdir(workingDirectory).catch(() => rm(workingDirectory, { recursive: true, force: true }).catch(() => {}));
  for (const { path } of files) await rm(path, { force: true }).catch(() => {});
}
