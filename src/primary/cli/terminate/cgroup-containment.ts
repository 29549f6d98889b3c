import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, constants } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Clock, delay } from '../../../shared/clock.js';
import type { Logger } from '../../../shared/log/logger.js';
import { Cgroup, ownCgroup } from '../../../shared/process/cgroup.js';
import { folderPrefix, type Instance } from '../../../shared/process/proc.js';
import type { Swept } from '../../../shared/process/scanner.js';
import type { Containment, ContainmentFactory, TerminationMeans } from './containment.js';

/** What is measured, and limited, of each CLI process with everything it starts. */
export interface CgroupSettings {
  /** Whether the memory controller is available. */
  readonly hasMemory: boolean;
  /** Null: no limit. */
  readonly maxMemoryBytes: number | null;
  readonly maxProcesses: number | null;
}

/** A process that the kernel can't end, because it waits for a disk, is left after this time. */
const killLimitMs = 10_000;

const shell = '/bin/sh';
/** Stands in front of what the shell itself writes to stderr. */
export const shellName = 'prompt-relay-sh';
/** The shell enters the cgroup and then becomes the program. */
const script =
  `{ echo 0 >"$1"; } 2>/dev/null || { echo '${shellName}: cannot enter its cgroup' >&2; exit 126; }; ` +
  'shift; unset PWD OLDPWD SHLVL; exec "$@"';

/** The command that starts a program in a cgroup. */
export function entering(cgroup: Cgroup, program: string, args: readonly string[]): [string, readonly string[]] {
  return [shell, ['-c', script, shellName, cgroup.entrance, program, ...args]];
}

/** An empty cgroup can serve the next program: to make and remove one costs two trips to a thread. */
const maxSpare = 16;

/** Without descriptors or memory, a process could not be started in a process group either. */
const shortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);

/** What serves if the cgroup of the service can no longer be used. */
export interface Fallback {
  readonly containments: ContainmentFactory;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * Holds each program in a cgroup of its own, below one that belongs to this primary. Other programs may remove that one while
 * it is empty: then it is made again, or else the fallback holds the program.
 */
export class CgroupContainments implements ContainmentFactory {
  readonly #home: Cgroup;
  readonly #settings: CgroupSettings;
  readonly #clock: Clock;
  readonly #spare: Cgroup[] = [];
  readonly #fallback: Fallback | null;
  #fault: string | null = null;

  /** Without a fallback, `create` rejects if no cgroup can be made. `home` exists already. A limit whose controller is not available in it must be null. */
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

  /** Skips those that another program has removed. */
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
    const { maxMemoryBytes, maxProcesses } = this.#settings;
    if (maxMemoryBytes !== null) await limitMemory(cgroup, maxMemoryBytes);
    if (maxProcesses !== null) await cgroup.set('pids.max', String(maxProcesses));
    return cgroup;
  }

  async #makeHome(): Promise<void> {
    await access(new Cgroup(dirname(this.#home.path)).entrance); // in an ordinary folder, nothing is made
    const isNew = await this.#home.create().then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
        return false; // another program that starts at the same time was faster
      },
    );
    await passOn(this.#home);
    if (isNew) this.#warn(`${this.#home.path} was removed`, 'a new cgroup');
  }

  async #clear(cgroup: Cgroup): Promise<Swept> {
    const found = cgroup.pids;
    const isEmpty = !cgroup.isPopulated || (await cgroup.kill(this.#clock, killLimitMs));
    if (!isEmpty) return { killed: found.length, left: cgroup.pids };
    // Peak memory can't be set back, so where it is measured every program gets a new cgroup.
    const isReusable = !this.#settings.hasMemory && this.#spare.length < maxSpare && cgroup.isPristine;
    if (isReusable) this.#spare.push(cgroup);
    else await cgroup.remove();
    return { killed: found.length, left: [] };
  }
}

/** A tree that has lost one process is of no use: when memory runs out, all of it is killed. */
async function limitMemory(cgroup: Cgroup, bytes: number): Promise<void> {
  await cgroup.set('memory.max', String(bytes));
  await cgroup.set('memory.swap.max', '0').catch(() => {}); // not there without swap accounting
  await cgroup.set('memory.oom.group', '1');
}

export type CgroupHome =
  | { readonly kind: 'usable'; readonly home: Cgroup; readonly controllers: ReadonlySet<string> }
  | { readonly kind: 'unusable'; readonly reason: string };

const trialLimitMs = 2000;

/**
 * Makes the cgroup that holds those of the CLI processes, and tries it out: a child is put into one and ended by it.
 * With `mayMove`, a service that has its cgroup for itself (as systemd's Delegate gives it) moves into a leaf first,
 * because controllers can be passed on only by a cgroup without processes of its own.
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
    await access(parent.entrance); // an ordinary folder is refused before anything is made in it
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

/** Whether this process has the cgroup for itself. */
async function isAlone(parent: Cgroup): Promise<boolean> {
  const own = await ownCgroup();
  const { pids } = parent;
  return own?.path === parent.path && pids.length === 1 && pids[0] === process.pid;
}

async function moveIntoLeaf(parent: Cgroup): Promise<void> {
  const leaf = parent.child('service');
  await leaf.create().catch(() => {}); // a predecessor in the same unit has made it
  await leaf.set('cgroup.procs', '0');
}

/** Has the controllers that are there passed on to the cgroups below. Each alone: one that can't be had must not cost the others. */
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
