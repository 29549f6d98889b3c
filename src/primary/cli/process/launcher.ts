import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { access, lstat, mkdir, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Environment } from '../../../shared/config/config.js';
import { cliError, RelayError, shuttingDown } from '../../../shared/errors.js';
import { closingFailed } from '../../../shared/node-internals/spawned-children.js';
import { cookieName, cookieOf, type Instance } from '../../../shared/process/proc.js';
import type { CommandLine, PrivateHome } from '../contract/adapter.js';
import type { CliObserver } from '../contract/observer.js';
import type { Child, Containment, ContainmentFactory, ExitStatus } from '../terminate/containment.js';
import { ProcessTree, type TreeContext } from '../terminate/process-tree.js';
import { searchPathOf } from './program.js';

/** Counter of started processes; folders and cookies contain its values. */
export interface Serials {
  last: number;
}

export interface LauncherSettings {
  readonly instance: Instance;
  /** Counter of started processes, shared by all launchers that use the same folders. */
  readonly serials: Serials;
  /** Private folder of the service, mode 0700, for the files of the processes. */
  readonly runtimeDirectory: string;
  /**
   * Private folder of the service, mode 0700, for an empty working directory of each process. May equal the runtime
   * directory.
   */
  readonly workDirectory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly home: PrivateHome | null;
}

/** Program, and how to start it. `plan` gets the path for a file with the system text. */
export interface SpawnRequest {
  readonly program: string;
  /** Lock of the login that the program renews; if the service is killed, the program may finish the renewal. */
  readonly renewalLock?: string;
  /** Environment variables of this start only. */
  readonly env?: Readonly<Record<string, string>>;
  plan(systemPath: string): CommandLine;
}

/**
 * Starts programs, each with a cookie, an empty private working directory, the permitted environment, and a
 * containment.
 */
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

  /** Starts a program. Rejects with `spawn_error` or the signal's reason, after removing all files. */
  async launch(order: SpawnRequest, signal?: AbortSignal): Promise<ProcessTree> {
    const { instance, serials, env } = this.#settings;
    const serial = ++serials.last;
    const { renewalLock } = order;
    const cookie = cookieOf(instance, serial, renewalLock);
    const home = this.#homeOf(serial);
    const { systemPath, temporaryDirectory, workingDirectory } = home;
    const plan = order.plan(systemPath);
    let containment: Containment | null = null;
    try {
      await this.#furnish(home, plan);
      containment = await this.#containments.create(serial, cookie);
      signal?.throwIfAborted();
      if (this.#isClosed) throw shuttingDown();
      // Programs leave files in TMPDIR, so each has a private folder that is removed with it.
      const inside = { env: { ...env, ...home.variables, ...order.env, TMPDIR: temporaryDirectory }, workingDirectory };
      const start = { program: order.program, args: plan.args, cookie, outlives: renewalLock !== undefined, ...inside };
      const child = await spawnProgram(start, containment, this.#context.observer);
      return new ProcessTree(child, containment, () => home.removeFiles(), this.#context);
    } catch (error) {
      // Not awaited, because no program has run inside, and no cgroup can be inspected without file descriptors.
      void containment?.clear();
      await home.removeFiles();
      throw error instanceof RelayError ? error : spawnError(order.program, error as NodeJS.ErrnoException);
    }
  }

  /** Creates and removes the folders of a process as a trial. Rejects with `spawn_error` if they cannot be created. */
  async tryPlace(program: string): Promise<void> {
    const home = this.#homeOf(++this.#settings.serials.last);
    try {
      await this.#furnish(home, { args: [], files: [] });
    } catch (error) {
      throw spawnError(program, error as NodeJS.ErrnoException);
    } finally {
      await home.removeFiles();
    }
  }

  /** Prevents further starts. */
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
 * Creates the folder again if a cleaner of temporary folders has removed it. Rejects if the folder belongs to another
 * user, who could replace the service's files.
 */
async function ensureOwnFolder(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return null;
  });
  if (found === null) return void (await mkdir(path, { mode: 0o700 })); // rejects if another user has just created it
  const isOwn = found.isDirectory() && found.uid === process.geteuid?.() && (found.mode & 0o077) === 0;
  if (!isOwn) throw new Error('the runtime directory is no longer its own');
}

/** Private folders of the service, which may be one and the same. */
export interface ProcessFolders {
  readonly runtimeDirectory: string;
  readonly workDirectory: string;
  /** Content of a private HOME for the program; null if it uses the HOME of the service. */
  readonly home: PrivateHome | null;
}

/**
 * Files of one process: an empty working directory and a folder for temporary files (0700), which may be the same, the
 * files of its launch (0600), and a private HOME if the adapter requires one.
 */
export class ProcessHome {
  readonly workingDirectory: string;
  readonly temporaryDirectory: string;
  /** Path for a file with the system text. */
  readonly systemPath: string;
  /** Environment variables that name folders in the private HOME. */
  readonly variables: Readonly<Record<string, string>>;
  readonly #home: PrivateHome | null;
  readonly #homePath: string;
  readonly #folders: ReadonlySet<string>;
  #files: CommandLine['files'] = [];

  constructor({ runtimeDirectory, workDirectory, home }: ProcessFolders, serial: number) {
    this.workingDirectory = join(workDirectory, String(serial));
    this.temporaryDirectory = join(runtimeDirectory, String(serial));
    this.systemPath = `${this.temporaryDirectory}.system`;
    this.#home = home;
    this.#homePath = `${this.temporaryDirectory}.home`;
    this.#folders = new Set([this.workingDirectory, this.temporaryDirectory]);
    const named = Object.entries(home?.variables ?? {}).map(([name, path]) => [name, join(this.#homePath, path)]);
    this.variables = Object.fromEntries(named);
  }

  async create(files: CommandLine['files']): Promise<void> {
    this.#files = files;
    for (const folder of this.#folders) await mkdir(folder, { mode: 0o700 });
    for (const { path, text } of files) await writeFile(path, text, { mode: 0o600, flag: 'wx' });
    if (this.#home !== null) await this.#furnish(this.#home);
  }

  /** Removes all files of the process. Never rejects: leftovers are removed with the folders of the service. */
  async removeFiles(): Promise<void> {
    for (const folder of this.#folders) await rmdir(folder).catch(() => remove(folder));
    for (const { path } of this.#files) await remove(path);
    if (this.#home !== null) await remove(this.#homePath);
  }

  async #furnish({ files, links }: PrivateHome): Promise<void> {
    await mkdir(this.#homePath, { mode: 0o700 });
    for (const folder of Object.values(this.variables)) await makeFolder(folder);
    for (const { path, text } of files) {
      await writeFile(await this.#place(path), text, { mode: 0o600, flag: 'wx' });
    }
    for (const { path, to } of links) if (await isThere(to)) await symlink(to, await this.#place(path));
  }

  async #place(path: string): Promise<string> {
    const place = join(this.#homePath, path);
    await makeFolder(dirname(place));
    return place;
  }
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { mode: 0o700, recursive: true });
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function remove(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true }).catch(() => {});
}

export interface ProgramStart {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  readonly cookie: string;
  /** Whether the program may outlive a killed service for a while. */
  readonly outlives?: boolean;
}

/** Starts the program as the leader of a new process group. Rejects with `spawn_error`. */
export async function spawnProgram(start: ProgramStart, inside: Containment, observer: CliObserver): Promise<Child> {
  const [program, args] = inside.enter(start.program, start.args, start.outlives);
  try {
    const env = { [cookieName]: start.cookie, ...start.env }; // first, so that even a truncated environment contains it
    const options = { cwd: start.workingDirectory, env, detached: true, stdio: 'pipe' } as const;
    const child = closingFailed(() => spawn(program, args, options));
    const exited = new Promise<ExitStatus>((resolve) => {
      child.once('exit', (code, signal) => {
        observer.exited(code === 0 ? 'ok' : signal === null ? 'nonzero' : 'signal');
        resolve({ code, signal });
      });
    });
    await new Promise<void>((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    child.on('error', () => {}); // a signal that could not be sent
    const { workingDirectory } = start;
    return Object.assign(child as ChildProcessWithoutNullStreams & { pid: number }, { exited, workingDirectory });
  } catch (error) {
    observer.exited('spawn_error');
    throw spawnError(start.program, error as NodeJS.ErrnoException);
  }
}

/** Codes of arguments that the system does not accept: too long ones, and those with a NUL. */
const refusedArguments: ReadonlySet<string | undefined> = new Set(['E2BIG', 'ERR_INVALID_ARG_VALUE']);

/**
 * Returns the error for a program that cannot be started. Clients may see it, so it does not contain the path. Only a
 * request can make arguments too long: this is no fault of the model CLI, which other clients may use.
 */
export function spawnError(program: string, error: NodeJS.ErrnoException): RelayError {
  const name = program.split('/').at(-1);
  if (refusedArguments.has(error.code))
    return cliError('request_refused', `the request does not fit into the arguments of the model CLI ${name}`);
  return new RelayError('spawn_error', `the model CLI ${name} could not be started: ${error.code ?? error.message}`);
}

/**
 * Whether `setpriv`, the shell or the fence around logins could not execute the program in its place. Its stderr then
 * begins with the name of one of these.
 */
export function couldNotExecute({ code, stderr }: { readonly code: number | null; readonly stderr: string }): boolean {
  return (code === 126 || code === 127) && /^(setpriv|prompt-relay-(sh|fence)): /.test(stderr);
}

/** Environment variables, beside PATH, that a model CLI inherits from the service. */
const allowed = ['HOME', 'LANG', 'TZ'];

/**
 * Returns the environment of every CLI process, to which the adapter may add. `further`: names of variables that the
 * operator allows.
 */
export function launchEnv(
  env: Environment,
  further: readonly string[],
  credential: { readonly variable: string | null; readonly value: string | null },
): Readonly<Record<string, string>> {
  const chosen: Record<string, string> = {};
  for (const name of [...allowed, ...further]) {
    const value = env[name];
    if (value !== undefined) chosen[name] = value;
  }
  chosen.PATH = searchPathOf(env);
  if (credential.variable !== null && credential.value !== null) chosen[credential.variable] = credential.value;
  return Object.freeze(chosen);
}
