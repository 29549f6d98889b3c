import type { Clock } from '../../../shared/clock.js';
import { chasesInLine } from '../../../shared/process/chase.js';
import { type Instance, membersOfGroup, writeInstance } from '../../../shared/process/proc.js';
import { ProcessScanner, type Swept, sweep } from '../../../shared/process/scanner.js';
import type { Containment, ContainmentFactory } from './containment.js';

export const sweepLimitMs = 10_000;
/**
 * After a sweep that found processes, another follows after each of these delays, because on a busy host the first may
 * have missed the last child of a process that forks all the time.
 */
const laterSweepsMs = [1000, 1000, 2000, 4000];

/** Returns the command that starts a program so that the kernel kills it when this process dies. */
export function tied(setpriv: string, program: string, args: readonly string[]): [string, readonly string[]] {
  return [setpriv, ['--pdeathsig', 'KILL', '--', program, ...args]];
}

/**
 * Contains programs on hosts without cgroups, by process group and by a cookie in the environment, which children
 * inherit. A process that drops environment, group and parent cannot be found.
 */
export class GroupContainments implements ContainmentFactory {
  readonly means = 'process-group';
  readonly #clock: Clock;
  readonly #scanner: ProcessScanner;
  readonly #chase = chasesInLine();
  readonly #cookiePrefix: string;
  readonly #setpriv: string | null;
  /** Cookies of programs that are not cleared yet. */
  readonly #live = new Set<string>();
  /** Processes that cannot be inspected and were already reported, by id and start time. */
  readonly #reported = new Set<string>();
  readonly #startTicks: number;
  #isLaterSweepDue = false;

  /** `setpriv`: path of the program that ties another program's life to this process; null if it is missing. */
  constructor(instance: Instance, setpriv: string | null, clock: Clock) {
    this.#startTicks = Number(instance.startTicks);
    this.#cookiePrefix = `${writeInstance(instance)}:`;
    this.#setpriv = setpriv;
    this.#clock = clock;
    this.#scanner = new ProcessScanner(clock);
  }

  create(_serial: number, cookie: string): Promise<Containment> {
    this.#live.add(cookie);
    const setpriv = this.#setpriv;
    return Promise.resolve({
      enter: (program, args, outlives = false) =>
        setpriv === null || outlives ? [program, args] : tied(setpriv, program, args),
      pids: async () => (await this.#scanner.find((other) => other === cookie)).pids,
      isQuiet: async (leader) => !signalGroup(leader, 0),
      clear: () => this.#clear(cookie),
      findEscaped: (leader) => this.#findEscaped(leader),
      usage: () => null,
    });
  }

  async close(): Promise<void> {
    await this.#sweep();
  }

  async #clear(cookie: string): Promise<Swept> {
    this.#live.delete(cookie);
    const swept = await this.#sweep();
    if (swept.killed > 0 || swept.left.length > 0) this.#sweepLater();
    return swept;
  }

  /** Kills leftovers of all cleared programs, so that a sweep finds what an earlier one has missed. */
  #sweep(): Promise<Swept> {
    const isLeft = (cookie: string) => cookie.startsWith(this.#cookiePrefix) && !this.#live.has(cookie);
    return sweep(this.#scanner, isLeft, this.#clock, sweepLimitMs, this.#chase);
  }

  /**
   * Returns members of the program's group that the sweep did not see, and processes that cannot be inspected and
   * started after this service.
   */
  async #findEscaped(leader: number): Promise<readonly number[] | null> {
    const hidden = [...this.#scanner.hidden].filter((found) => this.#isNew(found)).map(([pid]) => pid);
    const { alive, dead } = signalGroup(leader, 0) ? await membersOfGroup(leader) : { alive: [], dead: [leader] };
    const isGone = alive.length === 0 && (dead.length > 0 || !signalGroup(leader, 0));
    return isGone && hidden.length === 0 ? null : [...new Set([...alive, ...hidden])];
  }

  #isNew([pid, startTicks]: readonly [pid: number, startTicks: string]): boolean {
    const name = `${pid} ${startTicks}`;
    const isNew = Number(startTicks) > this.#startTicks && !this.#reported.has(name);
    if (isNew) this.#reported.add(name);
    return isNew;
  }

  /** Sweeps after the first of these delays, and then after the rest. Begins anew when a sweep finds a process. */
  #sweepLater([afterMs, ...rest]: readonly number[] = laterSweepsMs): void {
    if (afterMs === undefined || this.#isLaterSweepDue) return;
    this.#isLaterSweepDue = true;
    this.#clock.after(afterMs, () => void this.#sweepOnceMore(rest));
  }

  async #sweepOnceMore(laterMs: readonly number[]): Promise<void> {
    const { killed, left } = await this.#sweep();
    this.#isLaterSweepDue = false;
    this.#sweepLater(killed + left.length > 0 ? laterSweepsMs : laterMs);
  }
}

/** Signals every process of a group; signal 0 only checks. Returns whether the group has a member. */
export function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch {
    return false;
  }
}
