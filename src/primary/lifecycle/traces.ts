import { lstat, mkdtemp, rm, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Clock, delay } from '../../shared/clock.js';
import { type Config, ConfigFault, type Environment } from '../../shared/config/config.js';
import type { Logger } from '../../shared/log/logger.js';
import { endLeftovers, removeTracesOf, type TracePlaces } from '../../shared/process/leftovers.js';
import { folderPrefix, type Instance, instanceOfProcess } from '../../shared/process/proc.js';
import { cgroupParent } from '../cli/terminate/termination.js';

/** Where every primary makes a folder of its own, and the variable that says so. */
export interface RuntimeParent {
  readonly variable: 'RUNTIME_DIRECTORY' | 'TMPDIR';
  readonly path: string;
}

/**
 * systemd's RuntimeDirectory where there is one, the first of several, else the folder for temporary files. The path is
 * absolute, because programs that are told of it work in another folder.
 */
export function runtimeParent({ RUNTIME_DIRECTORY: own }: Environment): RuntimeParent {
  const [first] = own?.split(':') ?? [];
  if (first) return { variable: 'RUNTIME_DIRECTORY', path: resolve(first) };
  return { variable: 'TMPDIR', path: resolve(tmpdir()) };
}

/** A folder of our own, mode 0700. Its name tells whose it is, should it be left behind. Rejects with a ConfigFault. */
export async function makeRuntimeDirectory({ variable, path }: RuntimeParent, owner: Instance): Promise<string> {
  try {
    return await mkdtemp(join(path, `${folderPrefix(owner)}-`));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigFault([`${variable}: cannot create a folder in ${path} (${code})`]);
  }
}

/** Those of this primary, at its end. One path may be named twice. */
export async function removeDirectories(paths: readonly string[]): Promise<void> {
  for (const path of paths) await rm(path, { recursive: true, force: true });
}

/** A disk may not answer; the next start removes what is left. */
const removeLimitMs = 1000;

/** Owns what this process makes for itself on the host: its folders and its cgroup. */
export class OwnTraces {
  readonly #clock: Clock;
  #places: TracePlaces | null = null;
  #making: Promise<unknown> = Promise.resolve();
  #removing: Promise<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `make`, which makes all of it in these places. Never resolves once the process is about to end. */
  make<T>(places: TracePlaces, make: () => Promise<T>): Promise<T> {
    if (this.#removing !== null) return new Promise(() => {});
    this.#places = places;
    const made = make();
    this.#making = made.catch(() => {});
    return made;
  }

  /** The process is about to end: nothing more is made. Resolves when all is gone, or after a second. */
  remove(): Promise<void> {
    this.#removing ??= Promise.race([this.#removeAll(), delay(this.#clock, removeLimitMs)]);
    return this.#removing;
  }

  async #removeAll(): Promise<void> {
    await this.#making;
    if (this.#places !== null) await removeTracesOf(await instanceOfProcess(process.pid), this.#places);
  }
}

/** Throws a ConfigFault where something else is in the way of the Unix socket. What can't be seen, listening tells. */
export async function checkSocketPath(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found === null || found.isSocket()) return;
  throw new ConfigFault([`MODEL_API_SOCKET: ${path} exists and is not a socket: choose another path`]);
}

/**
 * Removes the socket of a predecessor that was killed. One that still answers is left alone, and one that can't be
 * removed stays: listening then fails. Throws a ConfigFault for anything that is not a socket.
 */
export async function clearStaleSocket(path: string): Promise<void> {
  await checkSocketPath(path); // a plain file refuses connections too
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

/** Ends what services that died have left behind, and clears what is in the way. */
export async function endPredecessors(config: Config, env: Environment, log: Logger, clock: Clock): Promise<void> {
  const reaped = await endLeftovers(clock, await tracesOf(config, env));
  if (reaped > 0) log.warn('orphans_reaped', { processes: reaped });
  if (config.socketPath !== null) await clearStaleSocket(config.socketPath);
}

/** Where a service of this configuration leaves traces. */
export async function tracesOf(config: Config, env: Environment): Promise<TracePlaces> {
  const parent = await cgroupParent(config.cgroup);
  return { runtimeParent: runtimeParent(env).path, cgroupParent: parent?.path ?? null };
}
