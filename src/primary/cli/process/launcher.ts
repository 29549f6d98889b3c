import { lstat, mkdir } from 'node:fs/promises';
import { RelayError, shuttingDown } from '../../../shared/errors.js';
import { cookieOf, type Instance } from '../../../shared/process/instance.js';
import type { CommandLine, PrivateHome } from '../contract/adapter.js';
import type { Containment, ContainmentFactory } from '../terminate/containment.js';
import { ProcessTree, type TreeContext } from '../terminate/process-tree.js';
import { ProcessHome } from './home.js';
import { spawnError, spawnProgram } from './spawn.js';

/** How many processes were started: folders and cookies are numbered. */
export interface Serials {
  last: number;
}

export interface LauncherSettings {
  readonly instance: Instance;
  /** Shared by all who use the same folders. */
  readonly serials: Serials;
  /** A folder of our own, mode 0700, for the files of the processes. */
  readonly runtimeDirectory: string;
  /** As private. Every process gets an empty working directory in it. It may be the runtime directory. */
  readonly workDirectory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly home: PrivateHome | null;
}

/** A program and how to start it. `plan` gets the path where a system text may be put. */
export interface SpawnRequest {
  readonly program: string;
  plan(systemPath: string): CommandLine;
}

/** Starts programs: each with a cookie, an empty private working directory, the allowed environment, and contained. */
export class Launcher {
  readonly #settings: LauncherSettings;
  readonly #containments: ContainmentFactory;
  readonly #context: TreeContext;
  #isClosed = false;

  constructor(settings: LauncherSettings, containments: ContainmentFactory, context: TreeContext) {
    this.#settings = settings;
    this.#containments = containments;
    this.#context = context;
  }

  /** Rejects with `spawn_error`, or with the signal's reason; then nothing has been left behind. */
  async launch(order: SpawnRequest, signal?: AbortSignal): Promise<ProcessTree> {
    const { instance, serials, env } = this.#settings;
    const serial = ++serials.last;
    const cookie = cookieOf(instance, serial);
    const home = this.#homeOf(serial);
    const { systemPath, temporaryDirectory, workingDirectory } = home;
    const plan = order.plan(systemPath);
    let containment: Containment | null = null;
    try {
      await this.#furnish(home, plan);
      containment = await this.#containments.create(serial, cookie);
      signal?.throwIfAborted();
      if (this.#isClosed) throw shuttingDown();
      // Programs litter their TMPDIR: in their own folder it goes with them.
      const inside = { env: { ...env, ...home.variables, TMPDIR: temporaryDirectory }, workingDirectory };
      const start = { program: order.program, args: plan.args, cookie, ...inside };
      const child = await spawnProgram(start, containment, this.#context.observer);
      return new ProcessTree(child, containment, () => home.remove(), this.#context);
    } catch (error) {
      void containment?.clear(); // nothing has been started in it, and without descriptors it could not be looked at
      await home.remove();
      throw error instanceof RelayError ? error : spawnError(order.program, error as NodeJS.ErrnoException);
    }
  }

  /** Rejects with `spawn_error` where a program could be given no folder now. */
  async tryPlace(program: string): Promise<void> {
    const home = this.#homeOf(++this.#settings.serials.last);
    try {
      await this.#furnish(home, { args: [], files: [] });
    } catch (error) {
      throw spawnError(program, error as NodeJS.ErrnoException);
    } finally {
      await home.remove();
    }
  }

  /** Starts nothing more. */
  stop(): void {
    this.#isClosed = true;
  }

  #homeOf(serial: number): ProcessHome {
    return new ProcessHome(this.#settings, serial);
  }

  async #furnish(home: ProcessHome, { files }: CommandLine): Promise<void> {
    await ensureOwnFolder(this.#settings.runtimeDirectory);
    await ensureOwnFolder(this.#settings.workDirectory);
    await home.create(files);
  }
}

/**
 * Something that cleans temporary folders may have removed it, and anybody may have made one of that name since: whoever
 * owns the folder could put other texts in the place of ours.
 */
async function ensureOwnFolder(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return null;
  });
  if (found === null) return void (await mkdir(path, { mode: 0o700 })); // fails where somebody else is faster
  const isOwn = found.isDirectory() && found.uid === process.geteuid?.() && (found.mode & 0o077) === 0;
  if (!isOwn) throw new Error('the runtime directory is no longer its own');
}
