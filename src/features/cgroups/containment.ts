import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, constants } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Containment, ContainmentFactory, TerminationMeans } from '../../primary/cli/terminate/containment.js';
import { type Clock, delay } from '../../shared/clock.js';
import type { Logger } from '../../shared/log/logger.js';
import { Cgroup, ownCgroup } from '../../shared/process/cgroup.js';
import { folderPrefix, type Instance } from '../../shared/process/proc.js';
import type { Swept } from '../../shared/process/scanner.js';

/** Measurements and limits of each CLI process with all its children. */
export interface CgroupSettings {
  /** Whether the memory controller is available. */
  readonly hasMemory: boolean;
  /** Whether the pids controller is available, which limits processes and threads. */
  readonly hasPids: boolean;
  /** null if unlimited. */
  readonly maxMemoryBytes: number | null;
}

/**
 * Maximum number of processes and threads of one CLI process with all its children. A CLI with its tools has some
 * dozens, and a fork bomb in one job must leave the other jobs and the host able to start processes.
 */
const maxProcesses = 512;

/** Time after which a process counts as unkillable, for example because it waits for a disk. */
const killLimitMs = 10_000;

const shell = '/bin/sh';
/** Name of the shell in its messages on stderr. */
const shellName = 'prompt-relay-sh';
/** Script that moves the shell into the cgroup and then replaces it with the program. */
const script =
  `{ echo 0 >"$1"; } 2>/dev/null || { echo '${shellName}: cannot enter its cgroup' >&2; exit 126; }; ` +
  'shift; unset PWD OLDPWD SHLVL; exec "$@"';

/** Returns the command that starts a program in a cgroup. */
export function entering(cgroup: Cgroup, program: string, args: readonly string[]): [string, readonly string[]] {
  return [shell, ['-c', script, shellName, cgroup.entrance, program, ...args]];
}

/**
 * Largest number of empty cgroups to keep for later programs: creating and removing one takes two thread pool
 * operations.
 */
const maxSpare = 16;

/** Error codes without a fallback: a process could not be started in a process group either. */
const shortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);

/** Containments to use if the cgroup of the service becomes unusable. */
export interface Fallback {
  readonly containments: ContainmentFactory;
  readonly log: Pick<Logger<string>, 'warn'>;
}

/**
 * Contains each program in a cgroup below the home, a cgroup that belongs to this primary. If another program removes
 * the empty home, the home is created again, or the fallback contains the program.
 */
export class CgroupContainments implements ContainmentFactory {
  readonly #home: Cgroup;
  readonly #settings: CgroupSettings;
  readonly #clock: Clock;
  readonly #spare: Cgroup[] = [];
  readonly #fallback: Fallback | null;
  #fault: string | null = null;

  /**
   * Without a fallback, `create` rejects if no cgroup can be created. `home` must exist. A limit must be null if its
   * controller is not available in `home`.
   */
  constructor(home: Cgroup, settings: CgroupSettings, clock: Clock, fallback: Fallback | null = null) {
    this.#home = home;
    this.#fallback = fallback;
    this.#settings = settings;
    this.#clock = clock;
  }

  get means(): TerminationMeans {
    return this.#fault === null ? 'cgroup' : 'process-group';
  }

  /** Why the last program has no cgroup; null if it has one. */
  get fault(): string | null {
    return this.#fault;
  }

  async create(serial: number, cookie = ''): Promise<Containment> {
    try {
      const cgroup = this.#takeSpare() ?? (await this.#make(serial));
      this.#fault = null;
      return this.#containmentIn(cgroup);
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException;
      if (this.#fallback === null || shortages.has(code)) throw error;
      const fault = `${this.#home.path}: ${code || message}`;
      if (fault !== this.#fault) this.#warn(fault, 'process groups');
      this.#fault = fault;
      return this.#fallback.containments.create(serial, cookie);
    }
  }

  #warn(error: string, instead: 'a new cgroup' | 'process groups'): void {
    this.#fallback?.log.warn('cgroup_lost', { error, instead });
  }

  /** Returns an empty cgroup for reuse. Skips cgroups that another program has removed. */
  #takeSpare(): Cgroup | undefined {
    let spare = this.#spare.pop();
    while (spare?.usage(false) === null) spare = this.#spare.pop();
    return spare;
  }

  #containmentIn(cgroup: Cgroup): Containment {
    const { hasMemory } = this.#settings;
    const usedMs = cgroup.usage(hasMemory)?.processorMs ?? 0;
    return {
      enter: (program, args) => entering(cgroup, program, args),
      pids: async () => cgroup.pids,
      isQuiet: async () => !cgroup.isPopulated,
      usage: () => {
        const usage = cgroup.usage(hasMemory);
        return usage && { ...usage, processorMs: usage.processorMs - usedMs };
      },
      clear: () => this.#clear(cgroup),
    };
  }

  async close(): Promise<void> {
    await this.#home.kill(this.#clock, killLimitMs);
    await this.#home.remove();
    await this.#fallback?.containments.close();
  }

  async #make(serial: number): Promise<Cgroup> {
    const cgroup = this.#home.child(String(serial));
    await cgroup.create().catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      await this.#makeHome();
      await cgroup.create();
    });
    const { maxMemoryBytes, hasPids } = this.#settings;
    if (maxMemoryBytes !== null) await limitMemory(cgroup, maxMemoryBytes);
    if (hasPids) await cgroup.set('pids.max', String(maxProcesses));
    return cgroup;
  }

  async #makeHome(): Promise<void> {
    // Rejects if the parent is an ordinary folder, so that nothing is created in it.
    await access(new Cgroup(dirname(this.#home.path)).entrance);
    const isNew = await this.#home.create().then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
        return false; // another program has just created the cgroup
      },
    );
    await passOn(this.#home);
    if (isNew) this.#warn(`${this.#home.path} was removed`, 'a new cgroup');
  }

  async #clear(cgroup: Cgroup): Promise<Swept> {
    const found = cgroup.pids;
    const isEmpty = !cgroup.isPopulated || (await cgroup.kill(this.#clock, killLimitMs));
    if (!isEmpty) return { killed: found.length, left: cgroup.pids };
    // Peak memory cannot be reset, so a measured program always gets a new cgroup.
    const isReusable = !this.#settings.hasMemory && this.#spare.length < maxSpare && cgroup.isPristine;
    if (isReusable) this.#spare.push(cgroup);
    else await cgroup.remove();
    return { killed: found.length, left: [] };
  }
}

/** Limits the memory. If it runs out, the kernel kills all processes, because a tree without one of them is useless. */
async function limitMemory(cgroup: Cgroup, bytes: number): Promise<void> {
  await cgroup.set('memory.max', String(bytes));
  await cgroup.set('memory.swap.max', '0').catch(() => {}); // the file is missing without swap accounting
  await cgroup.set('memory.oom.group', '1');
}

export type CgroupHome =
  | { readonly kind: 'usable'; readonly home: Cgroup; readonly controllers: ReadonlySet<string> }
  | { readonly kind: 'unusable'; readonly reason: string };

const trialLimitMs = 2000;

/**
 * Creates the cgroup below which the cgroups of the CLI processes are created, and tests it with a child that is moved
 * into a cgroup and killed there. With `mayMove`, a service that is alone in its cgroup (as with systemd's Delegate)
 * first moves into a leaf, because only a cgroup without processes can pass controllers on.
 */
export async function openCgroupHome(
  parent: Cgroup | null,
  instance: Instance,
  mayMove: boolean,
  clock: Clock,
): Promise<CgroupHome> {
  if (parent === null) return { kind: 'unusable', reason: 'cgroup v2 is not mounted, or switched off' };
  const home = parent.child(folderPrefix(instance));
  try {
    await access(parent.entrance); // rejects in an ordinary folder, before anything is created
    await home.create();
    if (mayMove && (await isAlone(parent))) await moveIntoLeaf(parent);
    await passOn(parent);
    await passOn(home);
    await tryOut(home, clock);
    const available = home.child('trial').controllers();
    await home.child('trial').remove();
    return { kind: 'usable', home, controllers: available };
  } catch (error) {
    await home.remove();
    const { code, message } = error as NodeJS.ErrnoException;
    return { kind: 'unusable', reason: `${parent.path}: ${code ?? message}` };
  }
}

/** Whether this process is alone in the cgroup. */
async function isAlone(parent: Cgroup): Promise<boolean> {
  const cgroup = await ownCgroup();
  const { pids } = parent;
  return cgroup?.path === parent.path && pids.length === 1 && pids[0] === process.pid;
}

async function moveIntoLeaf(parent: Cgroup): Promise<void> {
  const leaf = parent.child('service');
  await leaf.create().catch(() => {}); // a predecessor in the same unit has created it
  await leaf.set('cgroup.procs', '0');
}

/** Enables the controllers for child cgroups, one by one, so that a missing one does not prevent the others. */
async function passOn(cgroup: Cgroup): Promise<void> {
  for (const controller of ['memory', 'pids'])
    await cgroup.set('cgroup.subtree_control', `+${controller}`).catch(() => {});
}

async function tryOut(home: Cgroup, clock: Clock): Promise<void> {
  const trial = home.child('trial');
  await trial.create();
  await access(trial.entrance, constants.W_OK);
  await access(`${trial.path}/cgroup.kill`, constants.W_OK); // Linux 5.14
  const [program, args] = entering(trial, '/bin/cat', []);
  const child = spawn(program, args, { env: {}, stdio: ['pipe', 'ignore', 'ignore'] });
  child.stdin.on('error', () => {});
  await once(child, 'spawn');
  const exited = once(child, 'exit');
  for (const until = clock.monotonicMs() + trialLimitMs; !trial.isPopulated; ) {
    if (child.exitCode !== null || clock.monotonicMs() > until) throw new Error('a process cannot enter');
    await delay(clock, 1);
  }
  if (!(await trial.kill(clock, trialLimitMs))) throw new Error('cgroup.kill does not end a process');
  await exited;
}
