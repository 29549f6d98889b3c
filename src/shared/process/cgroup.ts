import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { type Clock, delay } from '../clock.js';
import { isThereNow, killNow, readNow } from './proc.js';

const pollMs = 5;

/** Resources that the processes of a cgroup have used. */
export interface CgroupUsage {
  readonly processorMs: number;
  /** Peak memory in bytes; null if the memory controller is not delegated. */
  readonly peakMemoryBytes: number | null;
}

/** Permissions of a systemd unit for cgroups. */
export interface UnitCgroups {
  /** Reason why the unit cannot create cgroups; null if it can. */
  readonly fault: string | null;
  /** Controllers that are delegated to the unit. */
  readonly controllers: ReadonlySet<string>;
}

/** Cgroup (v2), by the path of its folder. All processes in it can be found and killed, however they fork or detach. */
export class Cgroup {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  child(name: string): Cgroup {
    return new Cgroup(join(this.path, name));
  }

  /** Creates the cgroup. Rejects if it exists or the kernel refuses. */
  create(): Promise<void> {
    return mkdir(this.path);
  }

  /** Path of the file through which a process enters the cgroup, by writing 0. */
  get entrance(): string {
    return join(this.path, 'cgroup.procs');
  }

  set(file: string, value: string): Promise<void> {
    return writeFile(join(this.path, file), value);
  }

  /** Returns the controllers that are available in the cgroup. */
  controllers(): ReadonlySet<string> {
    return new Set(readNow(join(this.path, 'cgroup.controllers')).trim().split(' '));
  }

  /** PIDs of the processes in the cgroup, except in an outer PID namespace, whose PIDs the kernel shows as 0. */
  get pids(): number[] {
    return this.#shownPids.filter((pid) => pid > 0);
  }

  get #shownPids(): number[] {
    return [...readNow(this.entrance).matchAll(/\d+/g)].map(Number);
  }

  /**
   * Returns the PIDs of all processes in the cgroup and below it; null if some are in an outer PID namespace or
   * unreadable.
   */
  async members(): Promise<readonly number[] | null> {
    const below = await Promise.all((await this.#children()).map((child) => child.members()));
    const lists = [this.#shownPids, ...below];
    const all = lists.flatMap((pids) => pids ?? 0);
    return all.includes(0) || (all.length === 0 && this.isPopulated) ? null : all;
  }

  /**
   * Whether a process may run in the cgroup or below it. True if unreadable, such as without a free file descriptor.
   */
  get isPopulated(): boolean {
    const path = join(this.path, 'cgroup.events');
    return !/^populated 0$/m.test(readNow(path)) && isThereNow(path);
  }

  /** Whether the cgroup is as after its creation: without processes and child cgroups, and not frozen. */
  get isPristine(): boolean {
    const events = readNow(join(this.path, 'cgroup.events'));
    const hasNoChild = /^nr_descendants 0$/m.test(readNow(join(this.path, 'cgroup.stat')));
    return /^populated 0$/m.test(events) && !/^frozen 1$/m.test(events) && hasNoChild;
  }

  /** Returns the resources that the processes have used together; null if the cgroup was removed. */
  usage(hasMemoryController: boolean): CgroupUsage | null {
    const usec = /^usage_usec (\d+)$/m.exec(readNow(join(this.path, 'cpu.stat')))?.[1];
    if (usec === undefined) return null;
    const peak = hasMemoryController ? readNow(join(this.path, 'memory.peak')) : '';
    return { processorMs: Number(usec) / 1000, peakMemoryBytes: peak === '' ? null : Number(peak) };
  }

  /**
   * Memory in bytes that the limits of this cgroup and its ancestors leave; infinite without a limit. File pages that
   * the kernel would drop under memory pressure count as free.
   */
  get freeMemory(): number {
    const read = (file: string) => readNow(join(this.path, file));
    const limits = ['memory.max', 'memory.high'].map((file) => Number.parseInt(read(file), 10));
    const limit = Math.min(...limits.filter((bytes) => !Number.isNaN(bytes)), Number.POSITIVE_INFINITY);
    const dropped = Number(/^inactive_file (\d+)$/m.exec(read('memory.stat'))?.[1] ?? 0);
    const free = limit === Number.POSITIVE_INFINITY ? limit : limit - Number(read('memory.current')) + dropped;
    const parent = new Cgroup(dirname(this.path));
    const isTop = readNow(join(parent.path, 'cgroup.controllers')) === '';
    return isTop ? free : Math.min(free, parent.freeMemory);
  }

  /** Kills all processes in the cgroup and below it. Resolves with whether all have ended within `limitMs`. */
  async kill(clock: Clock, limitMs: number): Promise<boolean> {
    const until = clock.monotonicMs() + limitMs;
    await this.#order('kill', '1');
    if (!this.isPopulated) return true;
    do {
      if (clock.monotonicMs() >= until) return false;
      await delay(clock, pollMs);
      await this.#order('freeze', '1'); // otherwise processes may fork faster than they are found
      await this.#signalEach();
      await this.#order('kill', '1');
    } while (this.isPopulated);
    await this.#order('freeze', '0');
    return true;
  }

  /** Writes a control file. Ignores errors: the cgroup may be removed, or no file descriptor may be free. */
  async #order(what: 'kill' | 'freeze', value: string): Promise<void> {
    await this.set(`cgroup.${what}`, value).catch(() => {});
  }

  /** Kills each process. `cgroup.kill` signals only main threads, and misses a process whose main thread has exited. */
  async #signalEach(): Promise<void> {
    for (const pid of this.pids) killNow(pid); // no await in between: afterwards, another process could have the PID
    for (const child of await this.#children()) await child.#signalEach();
  }

  /**
   * Removes the cgroup and its child cgroups. Resolves with false if a process runs in it; true also if it does not
   * exist.
   */
  async remove(): Promise<boolean> {
    if (await this.#removeSelf()) return true;
    for (const child of await this.#children()) await child.remove();
    return this.#removeSelf();
  }

  async #children(): Promise<Cgroup[]> {
    const entries = await readdir(this.path, { withFileTypes: true }).catch(() => []);
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => this.child(name));
  }

  async #removeSelf(): Promise<boolean> {
    try {
      await rmdir(this.path);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT';
    }
  }
}

/** Returns the parent of the service's cgroups; null if cgroups are switched off, or if `auto` finds none. */
export async function cgroupParent(setting: 'auto' | 'off' | string): Promise<Cgroup | null> {
  if (setting === 'off') return null;
  return setting === 'auto' ? ownCgroup() : new Cgroup(setting);
}

/** Returns the cgroup of this process; null if cgroup v2 is not mounted or no mount shows the folder. */
export async function ownCgroup(): Promise<Cgroup | null> {
  const [mounts, memberships] = await Promise.all([
    readFile('/proc/self/mountinfo', 'utf8').catch(() => ''),
    readFile('/proc/self/cgroup', 'utf8').catch(() => ''),
  ]);
  const folders = foldersOf(memberships, mounts);
  return folders.find((folder) => folder.pids.includes(process.pid)) ?? folders[0] ?? null;
}

/**
 * Returns the folders at which the mounts may show a cgroup. A mount may be hidden below another one, or show only a
 * part of the tree.
 */
function foldersOf(memberships: string, mounts: string): readonly Cgroup[] {
  const membership = /^0::(\/.*)$/m.exec(memberships)?.[1];
  if (membership === undefined) return [];
  return mounts.split('\n').flatMap((line) => {
    if (!/ - cgroup2 /.test(line)) return [];
    const [, , , root = '/', point = ''] = line.split(' ').map(unescaped);
    const inside = posix.relative(root, membership);
    return inside === '..' || inside.startsWith('../') ? [] : [new Cgroup(posix.join(point, inside))];
  });
}

/** Decodes the octal numbers that mountinfo writes for a space, a tab, a newline and a backslash. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
