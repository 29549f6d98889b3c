import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, delay } from '../../shared/clock.js';
import { cookieOf } from '../../shared/cookie.js';
import { RelayError, shuttingDown } from '../../shared/errors.js';
import type { Instance } from '../../shared/instance.js';
import type { Consultation, Launch, LaunchPlan } from './adapter.js';
import { type CliLimits, CliProcess } from './cli-process.js';
import type { KnownProgram } from './cli-program.js';
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

/** Owns every process tree that is started: model CLI processes and short consultations, each with a cookie, an empty private working directory and the allowed environment. */
export class CliLauncher {
  readonly #settings: LauncherSettings;
  readonly #context: TreeContext;
  readonly #clock: Clock;
  readonly #trees = new Set<ProcessTree>();
  #processes = 0;
  #serial = 0;
  #isClosed = false;

  constructor(settings: LauncherSettings, context: TreeContext) {
    this.#settings = settings;
    this.#context = context;
    this.#clock = context.clock;
  }

  /** Model CLI processes that live, those that are being ended included; short consultations are not counted. */
  get size(): number {
    return this.#processes;
  }

  /** Throws `spawn_error`, or the signal's reason; then nothing has been left behind. */
  async start({ path, leading, dialect }: KnownProgram, launch: Launch, signal: AbortSignal): Promise<CliProcess> {
    const home = this.#nextHome();
    const plan = dialect.plan(launch, home.systemPath);
    const onEnded = () => removeHome(home, plan);
    try {
      await mkdir(home.workingDirectory, { mode: 0o700 });
      for (const file of plan.files) await writeFile(file.path, file.text, { mode: 0o600, flag: 'wx' });
      signal.throwIfAborted();
      const tree = await this.#spawn({ program: path, args: [...leading, ...plan.args], ...home });
      this.#processes++;
      void tree.ended.then(() => this.#processes--);
      const { limits } = this.#settings;
      return new CliProcess(tree, { dialect, limits, clock: this.#clock, observer: this.#context.observer, onEnded });
    } catch (error) {
      await onEnded();
      throw error;
    }
  }

  /** Runs the program briefly, for what it says of itself; ends its whole tree after 10 s at the latest. */
  async consult(path: string, args: readonly string[], input = ''): Promise<Consultation> {
    const home = this.#nextHome();
    await mkdir(home.workingDirectory, { mode: 0o700 });
    try {
      return await this.#listenTo(await this.#spawn({ program: path, args, ...home }), input);
    } finally {
      await removeHome(home, null);
    }
  }

  /** Starts nothing more; resolves when nothing that was started here is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#trees].map((tree) => tree.end(this.#settings.limits.graceMs, 'shutting_down')));
  }

  async #listenTo(tree: ProcessTree, input: string): Promise<Consultation> {
    const { child } = tree;
    let stdout = '';
    child.stdin.on('error', () => {}).end(input);
    child.stderr.resume();
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < maxConsultBytes) stdout += text;
    });
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    try {
      const code = await Promise.race([closed.then(() => child.exitCode), delay(this.#clock, consultLimitMs)]);
      if (code === undefined)
        throw new RelayError('spawn_error', 'the model CLI does not answer questions about itself');
      return { code, stdout };
    } finally {
      await tree.end(0, 'done');
    }
  }

  /** Programs litter their TMPDIR: in their own folder it goes with them. */
  async #spawn(start: Omit<ProgramStart, 'env'>): Promise<ProcessTree> {
    if (this.#isClosed) throw shuttingDown();
    const env = { ...this.#settings.env, TMPDIR: start.workingDirectory };
    const tree = new ProcessTree({ ...start, env }, this.#context);
    this.#trees.add(tree);
    const forget = () => void this.#trees.delete(tree);
    void tree.ended.then(forget);
    tree.started.catch(forget);
    await tree.started;
    return tree;
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

/** Never rejects: a folder that can't be removed now goes with the runtime directory. */
async function removeHome(home: Home, plan: LaunchPlan | null): Promise<void> {
  const remove = (path: string) => rm(path, { recursive: true, force: true }).catch(() => {});
  await rmdir(home.workingDirectory).catch(() => remove(home.workingDirectory));
  for (const file of plan?.files ?? []) await remove(file.path);
}
