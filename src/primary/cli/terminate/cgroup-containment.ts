import type { Clock } from '../../../shared/clock.js';
import type { Cgroup, CgroupUsage } from '../../../shared/process/cgroup.js';
import type { Swept } from '../../../shared/process/scanner.js';
import type { Containment, ContainmentFactory } from './containment.js';

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

/** Holds each program in a cgroup of its own, below one that belongs to this primary. */
export class CgroupContainments implements ContainmentFactory {
  readonly means = 'cgroup';
  readonly #home: Cgroup;
  readonly #settings: CgroupSettings;
  readonly #clock: Clock;
  readonly #spare: Cgroup[] = [];

  /** `home` exists already. A limit whose controller is not available in it must be null. */
  constructor(home: Cgroup, settings: CgroupSettings, clock: Clock) {
    this.#home = home;
    this.#settings = settings;
    this.#clock = clock;
  }

  async create(serial: number): Promise<Containment> {
    const cgroup = this.#spare.pop() ?? (await this.#make(serial));
    const { hasMemory } = this.#settings;
    const usedMs = cgroup.usage(hasMemory)?.processorMs ?? 0;
    return {
      enter: (program, args) => entering(cgroup, program, args),
      pids: async () => cgroup.pids,
      isQuiet: async () => !cgroup.isPopulated,
      usage: () => sinceThen(cgroup.usage(hasMemory), usedMs),
      clear: () => this.#clear(cgroup),
    };
  }

  async close(): Promise<void> {
    await this.#home.kill(this.#clock, killLimitMs);
    await this.#home.remove();
  }

  async #make(serial: number): Promise<Cgroup> {
    const cgroup = this.#home.child(String(serial));
    await cgroup.create();
    const { maxMemoryBytes, maxProcesses } = this.#settings;
    if (maxMemoryBytes !== null) await limitMemory(cgroup, maxMemoryBytes);
    if (maxProcesses !== null) await cgroup.set('pids.max', String(maxProcesses));
    return cgroup;
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

function sinceThen(usage: CgroupUsage | null, usedMs: number): CgroupUsage | null {
  return usage && { ...usage, processorMs: usage.processorMs - usedMs };
}

/** A tree that has lost one process is of no use: when memory runs out, all of it is killed. */
async function limitMemory(cgroup: Cgroup, bytes: number): Promise<void> {
  await cgroup.set('memory.max', String(bytes));
  await cgroup.set('memory.swap.max', '0').catch(() => {}); // not there without swap accounting
  await cgroup.set('memory.oom.group', '1');
}
