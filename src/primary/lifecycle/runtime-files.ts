import { lstat, mkdtemp, rm, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { withLimit } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import { type Config, ConfigFault, type Environment } from '../../shared/config/config.js';
import type { Logger } from '../../shared/log/logger.js';
import { cgroupParent } from '../../shared/process/cgroup.js';
import { endLeftovers, type RuntimePlaces, removeRuntimeFilesOf } from '../../shared/process/leftovers.js';
import { folderPrefix, type Instance, instanceOfProcess } from '../../shared/process/proc.js';

/** Parent of the runtime directories of all primaries, and the variable that sets it. */
export interface RuntimeParent {
  readonly variable: 'RUNTIME_DIRECTORY' | 'TMPDIR';
  readonly path: string;
}

/**
 * Returns the first RuntimeDirectory of systemd if it is set, otherwise the directory for temporary files. The path is
 * absolute, because programs with another working directory get it.
 */
export function runtimeParent({ RUNTIME_DIRECTORY: directories }: Environment): RuntimeParent {
  const [first] = directories?.split(':') ?? [];
  if (first) return { variable: 'RUNTIME_DIRECTORY', path: resolve(first) };
  return { variable: 'TMPDIR', path: resolve(tmpdir()) };
}

/**
 * Creates a private directory with mode 0700. The name identifies the owner, in case the directory is left behind.
 * Rejects with a ConfigFault.
 */
export async function makeRuntimeDirectory({ variable, path }: RuntimeParent, owner: Instance): Promise<string> {
  try {
    return await mkdtemp(join(path, `${folderPrefix(owner)}-`));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigFault([`${variable}: cannot create a folder in ${path} (${code})`]);
  }
}

/** Removes directories of this primary at its end. A path may occur twice. */
export async function removeDirectories(paths: readonly string[]): Promise<void> {
  for (const path of paths) await rm(path, { recursive: true, force: true });
}

/** Time limit, because a disk may not respond. The next start removes the rest. */
const removeLimitMs = 1000;

/** Owns the directories and the cgroup that this process creates on the host. */
export class RuntimeFiles {
  readonly #clock: Clock;
  #places: RuntimePlaces | null = null;
  #making: Promise<unknown> = Promise.resolve();
  #removing: Promise<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `make`, which creates them at these locations. Never resolves after `removeFiles` was called. */
  make<T>(places: RuntimePlaces, make: () => Promise<T>): Promise<T> {
    if (this.#removing !== null) return new Promise(() => {});
    this.#places = places;
    const made = make();
    this.#making = made.catch(() => {});
    return made;
  }

  /** Removes everything, and prevents further creation. Resolves after one second at most, and never rejects. */
  removeFiles(): Promise<void> {
    this.#removing ??= withLimit(
      this.#removeAll().catch(() => {}),
      removeLimitMs,
      this.#clock,
    );
    return this.#removing;
  }

  async #removeAll(): Promise<void> {
    await this.#making;
    if (this.#places !== null) await removeRuntimeFilesOf(await instanceOfProcess(process.pid), this.#places);
  }
}

/**
 * Throws a ConfigFault if the path of the Unix socket is another kind of file. Unreadable paths are ignored here,
 * because listening reports them.
 */
export async function checkSocketPath(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found === null || found.isSocket()) return;
  throw new ConfigFault([`MODEL_API_SOCKET: ${path} exists and is not a socket: choose another path`]);
}

/**
 * Removes the socket of a predecessor that was killed. A socket that accepts connections, or cannot be removed, is
 * left: listening then fails. Rejects with a ConfigFault if the path is another kind of file.
 */
export async function clearStaleSocket(path: string): Promise<void> {
  await checkSocketPath(path); // a plain file refuses connections, too
  if (await refusesConnections(path)) await unlink(path).catch(() => {});
}

function refusesConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(false);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}

/** Ends processes of dead services, and removes their runtime files and a stale socket. */
export async function endPredecessors(config: Config, env: Environment, log: Logger, clock: Clock): Promise<void> {
  const reaped = await endLeftovers(clock, await runtimePlacesOf(config, env));
  if (reaped > 0) log.warn('orphans_reaped', { processes: reaped });
  if (config.socketPath !== null) await clearStaleSocket(config.socketPath);
}

/** Returns the locations that a service with this configuration uses. */
export async function runtimePlacesOf(config: Config, env: Environment): Promise<RuntimePlaces> {
  const parent = await cgroupParent(config.cgroup);
  return { runtimeParent: runtimeParent(env).path, cgroupParent: parent?.path ?? null };
}
