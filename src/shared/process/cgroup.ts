import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { type Clock, delay } from '../clock.js';
import { isThereNow, killNow, readNow } from './proc.js';

const pollMs = 5;

/** What the processes of a cgroup have used. */
export interface CgroupUsage {
  readonly processorMs: number;
  /** Null where the memory controller is not delegated. */
  readonly peakMemoryBytes: number | null;
}

/** What systemd lets the service of a unit do with cgroups. */
export interface UnitCgroups {
  /** Why it cannot make any; null if it can. */
  readonly fault: string | null;
  /** The controllers that are delegated to it. */
  readonly controllers: ReadonlySet<string>;
}

/** One cgroup (v2) by its folder: what Linux offers to find and end everything in it, whatever it has shed or forked. */
export class Cgroup {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  child(name: string): Cgroup {
    return new Cgroup(join(this.path, name));
  }

  /** Rejects where it exists, or where the system refuses. */
  create(): Promise<void> {
    return mkdir(this.path);
  }

  /** A process that writes 0 to this file enters. */
  get entrance(): string {
    return join(this.path, 'cgroup.procs');
  }

  set(file: string, value: string): Promise<void> {
    return writeFile(join(this.path, file), value);
  }

  /** The controllers that are available in it. */
  controllers(): ReadonlySet<string> {
    return new Set(readNow(join(this.path, 'cgroup.controllers')).trim().split(' '));
  }

  /** Without those of an outer pid namespace, which are all shown as 0. */
  get pids(): number[] {
    return this.#shownPids.filter((pid) => pid > 0);
  }

  get #shownPids(): number[] {
    return [...readNow(this.entrance).matchAll(/\d+/g)].map(Number);
  }

  /** Ids of all processes in it and below it; null if some are of an outer pid namespace, or can't be read. */
  async members(): Promise<readonly number[] | null> {
    const below = await Promise.all((await this.#children()).map((child) => child.members()));
    const lists = [this.#shownPids, ...below];
    const all = lists.flatMap((pids) => pids ?? 0);
    return all.includes(0) || (all.length === 0 && this.isPopulated) ? null : all;
  }

  /** Whether anything may run in it or below it: also if that can't be read now, as without descriptors. */
  get isPopulated(): boolean {
    const path = join(this.path, 'cgroup.events');
    return !/^populated 0$/m.test(readNow(path)) && isThereNow(path);
  }

  /** Whether it is as new: nothing runs in it, nothing was made below it, and it is not frozen. */
  get isPristine(): boolean {
    const events = readNow(join(this.path, 'cgroup.events'));
    const hasNoChild = /^nr_descendants 0$/m.test(readNow(join(this.path, 'cgroup.stat')));
    return /^populated 0$/m.test(events) && !/^frozen 1$/m.test(events) && hasNoChild;
  }

  /** What its processes have used together; null where it has been removed. */
  usage(hasMemoryController: boolean): CgroupUsage | null {
    const usec = /^usage_usec (\d+)$/m.exec(readNow(join(this.path, 'cpu.stat')))?.[1];
    if (usec === undefined) return null;
    const peak = hasMemoryController ? readNow(join(this.path, 'memory.peak')) : '';
    return { processorMs: Number(usec) / 1000, peakMemoryBytes: peak === '' ? null : Number(peak) };
  }

  /**
   * Memory that its limits, and those of the cgroups above it, leave, bytes; infinite without a limit. Pages of files that
   * the kernel drops when memory is short count as free.
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

  /** Ends everything in it and below it at once. Returns whether that was all within the limit. */
  async kill(clock: Clock, limitMs: number): Promise<boolean> {
    const until = clock.monotonicMs() + limitMs;
    await this.#order('kill', '1');
    if (!this.isPopulated) return true;
    do {
      if (clock.monotonicMs() >= until) return false;
      await delay(clock, pollMs);
      await this.#order('freeze', '1'); // else some may fork faster than they are found
      await this.#signalEach();
      await this.#order('kill', '1');
    } while (this.isPopulated);
    await this.#order('freeze', '0');
    return true;
  }

  /** Fails where it has gone, and while no file can be opened. */
  async #order(what: 'kill' | 'freeze', value: string): Promise<void> {
    await this.set(`cgroup.${what}`, value).catch(() => {});
  }

  /** `cgroup.kill` signals the main thread of each process, and misses a process whose main thread has exited. */
  async #signalEach(): Promise<void> {
    for (const pid of this.pids) killNow(pid); // nothing is awaited between: later, the id may be a stranger's
    for (const child of await this.#children()) await child.#signalEach();
  }

  /** Removes it, and what was made below it. Returns false while something runs in it; true also where it has gone. */
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

/** The cgroup of this process; null without cgroup v2, or if its folder can't be seen from here. */
export async function ownCgroup(): Promise<Cgroup | null> {
  const [mounts, memberships] = await Promise.all([
    readFile('/proc/self/mountinfo', 'utf8').catch(() => ''),
    readFile('/proc/self/cgroup', 'utf8').catch(() => ''),
  ]);
  const folders = foldersOf(memberships, mounts);
  return folders.find((folder) => folder.pids.includes(process.pid)) ?? folders[0] ?? null;
}

/** Where a cgroup should be seen, mount by mount. One mount may lie hidden below another, or show a part of the tree only. */
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

/** mountinfo writes a blank, a tab, a newline and a backslash as octal numbers. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
