import { type Clock, delay } from '../../../shared/clock.js';
import type { Logger } from '../../../shared/log/logger.js';
import type { CgroupUsage } from '../../../shared/process/cgroup.js';
import { mainThreadHasEnded, startTicksNow } from '../../../shared/process/proc.js';
import type { CliObserver, EndReason } from '../contract/observer.js';
import type { Child, Containment } from './containment.js';
import { signalGroup } from './group-containment.js';
import type { KillTree } from './termination.js';

const pollMs = 20;
/** Until then the system has buried what was killed. */
const lastCheckMs = 250;
/** A program that renews its login is not ended for so long: no CLI takes longer. */
const maxRenewalMs = 120_000;
/** tree-kill starts a `ps` for each process: of a larger tree only the group is signalled before all of it is killed. */
const maxTreeKillProcesses = 16;
/** A job that was cut short: here the user expects tree-kill to go down the tree. */
const cutReasons: ReadonlySet<EndReason> = new Set(['timeout', 'cancelled', 'shutting_down']);

export interface TreeContext {
  readonly killTree: KillTree;
  readonly clock: Clock;
  readonly log: Logger;
  readonly observer: CliObserver;
  /** Whether one of these processes is renewing the login of its CLI; without it, no process ever is. */
  readonly isRenewingLogin?: (pids: () => Promise<readonly number[]>) => Promise<boolean>;
}

/**
 * Owns a started program and everything that it starts, until nothing of it is left. A process id is signalled only
 * while the program has not been reaped: after that, its number may belong to a stranger.
 */
export class ProcessTree {
  readonly child: Child;
  readonly #containment: Containment;
  readonly #onGone: () => Promise<void>;
  readonly #context: TreeContext;
  readonly #startTicks: string;
  #ending: Promise<void> | undefined;

  /** `onGone` is awaited when nothing is left. */
  constructor(child: Child, containment: Containment, onGone: () => Promise<void>, context: TreeContext) {
    this.child = child;
    this.#containment = containment;
    this.#onGone = onGone;
    this.#context = context;
    this.#startTicks = startTicksNow(child.pid);
  }

  get hasExited(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Whether the program has died, even if Node has not reported it yet. */
  get hasDied(): boolean {
    return this.hasExited || mainThreadHasEnded(this.child.pid);
  }

  /** Stops the program and its group until `resume`. */
  pause(): void {
    this.#signal('SIGSTOP');
  }

  resume(): void {
    this.#signal('SIGCONT');
  }

  /** What all of its processes have used so far; null where that is not measured. */
  usage(): CgroupUsage | null {
    return this.#containment.usage();
  }

  /**
   * SIGTERM to the program and its group; what is left after `graceMs` is killed. What a program leaves behind when it
   * exits by itself is killed at once. Resolves when no process is left. Later calls join the first.
   */
  end(graceMs: number, reason: EndReason): Promise<void> {
    this.#ending ??= this.#end(graceMs, reason);
    return this.#ending;
  }

  async #end(graceMs: number, reason: EndReason): Promise<void> {
    await this.#untilLoginIsStored();
    if (!this.hasExited) await this.#terminate(graceMs, reason);
    await this.#untilLoginIsStored(); // the signal may have come just after the renewal had begun
    const isForced = !this.hasExited;
    const { killed, left } = await this.#containment.clear();
    if (isForced) await this.#exited();
    const { observer, log } = this.#context;
    if (isForced) observer.killed('SIGKILL', reason);
    if (killed > 0) observer.orphansReaped(isForced ? killed - 1 : killed);
    if (left.length > 0) log.error('tree_not_gone', { processes: left.join(' ') });
    else if (this.#containment.rest) this.#context.clock.after(lastCheckMs, () => void this.#logRest());
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr]) stream.destroy();
    await this.#onGone();
  }

  /** If a program were ended while it renews its login, the login would be lost. */
  async #untilLoginIsStored(): Promise<void> {
    const { clock, isRenewingLogin } = this.#context;
    const untilMs = clock.monotonicMs() + maxRenewalMs;
    const pids = async () => [this.child.pid, ...(await this.#containment.pids())];
    const isRenewing = () => isRenewingLogin?.(pids).catch(() => false) ?? false;
    while (!this.hasExited && clock.monotonicMs() < untilMs && (await isRenewing()))
      await Promise.race([this.child.exited, delay(clock, pollMs)]);
  }

  /** A program that was started a moment ago has not entered its cgroup yet, and is not ended with it. */
  async #exited(): Promise<void> {
    if (this.hasExited) return;
    this.#signal('SIGKILL');
    await Promise.race([this.child.exited, delay(this.#context.clock, lastCheckMs)]);
  }

  /** A process group contains a program less well than a cgroup: what may have escaped is logged. */
  async #logRest(): Promise<void> {
    const { pid } = this.child;
    const rest = await this.#containment.rest?.(pid);
    if (rest) this.#context.log.warn('tree_unclear', { group: pid, processes: rest.join(' ') });
  }

  /** Asks politely. Resolves when all have gone, or the grace is over. */
  async #terminate(graceMs: number, reason: EndReason): Promise<void> {
    const { clock, observer, killTree } = this.#context;
    const until = clock.monotonicMs() + graceMs;
    const { pid } = this.child;
    const isOurs = () => this.#isOurs();
    if (cutReasons.has(reason) && (await this.#isSmall()) && isOurs()) await killTree(pid, 'SIGTERM', isOurs);
    if (this.#signal('SIGTERM')) observer.killed('SIGTERM', reason);
    while (clock.monotonicMs() < until && !(this.hasExited && (await this.#containment.isQuiet(pid)))) {
      const pause = delay(clock, pollMs);
      await (this.hasExited ? pause : Promise.race([this.child.exited, pause]));
    }
  }

  /** Signals the program and its group. Returns whether anything was signalled. */
  #signal(signal: NodeJS.Signals): boolean {
    return this.#isOurs() && signalGroup(this.child.pid, signal);
  }

  /**
   * Whether the number of the program is still its own. Its start shows that, because Node reaps several programs before it
   * reports the first. Where that can't be read, what Node has reported counts.
   */
  #isOurs(): boolean {
    const startTicks = startTicksNow(this.child.pid);
    return !this.hasExited && (startTicks === '' || startTicks === this.#startTicks);
  }

  async #isSmall(): Promise<boolean> {
    return (await this.#containment.pids()).length <= maxTreeKillProcesses;
  }
}
