import type { Clock } from '../../../shared/clock.js';
import { type Instance, membersOfGroup, writeInstance } from '../../../shared/process/proc.js';
import { ProcessScanner, type Swept, sweep } from '../../../shared/process/scanner.js';
import type { Containment, ContainmentFactory } from './containment.js';

const sweepLimitMs = 10_000;
/** Where a sweep found something, its last child may have been missed on a busy host: it is repeated after this time. */
const secondSweepMs = 1000;

/** The command that starts a program so that it is killed when this process dies. */
export function tied(setpriv: string, program: string, args: readonly string[]): [string, readonly string[]] {
  return [setpriv, ['--pdeathsig', 'KILL', '--', program, ...args]];
}

/**
 * For hosts without cgroups. Holds each program by its process group and by a cookie in its environment, which children
 * inherit. A process that sheds environment, group and parent can't be found this way.
 */
export class GroupContainments implements ContainmentFactory {
  readonly means = 'process-group';
  readonly #clock: Clock;
  readonly #scanner: ProcessScanner;
  readonly #cookiePrefix: string;
  readonly #setpriv: string | null;
  /** Cookies of the programs that have not been cleared. */
  readonly #live = new Set<string>();
  /** Processes that can't be inspected and have been reported, by id and start. */
  readonly #reported = new Set<string>();
  readonly #startTicks: number;
  #isSecondSweepDue = false;

  /** `setpriv` is the path of the program that ties others to our life; else null. */
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
      enter: (program, args) => (setpriv === null ? [program, args] : tied(setpriv, program, args)),
      pids: async () => (await this.#scanner.find((other) => other === cookie)).pids,
      isQuiet: async (leader) => !signalGroup(leader, 0),
      clear: () => this.#clear(cookie),
      rest: (leader) => this.#rest(leader),
      usage: () => null,
    });
  }

  async close(): Promise<void> {
    await this.#sweep();
  }

  async #clear(cookie: string): Promise<Swept> {
    this.#live.delete(cookie);
    const swept = await this.#sweep();
    if (swept.killed > 0) this.#sweepAgainLater();
    return swept;
  }

  /** Ends whatever any cleared program has left, so what one sweep has missed, the next one finds. */
  #sweep(): Promise<Swept> {
    const isLeft = (cookie: string) => cookie.startsWith(this.#cookiePrefix) && !this.#live.has(cookie);
    return sweep(this.#scanner, isLeft, this.#clock, sweepLimitMs);
  }

  /** Members of the program's group that the sweep did not see, and what can't be inspected and began after this service. */
  async #rest(leader: number): Promise<readonly number[] | null> {
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

  #sweepAgainLater(): void {
    if (this.#isSecondSweepDue) return;
    this.#isSecondSweepDue = true;
    this.#clock.after(secondSweepMs, () => {
      this.#isSecondSweepDue = false;
      void this.#sweep();
    });
  }
}

/** Signals every process of a group; 0 only checks. Returns whether the group has a member. */
export function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch {
    return false;
  }
}
