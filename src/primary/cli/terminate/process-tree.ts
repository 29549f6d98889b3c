import { withLimit } from '../../../shared/async.js';
import { type Clock, delay } from '../../../shared/clock.js';
import type { Logger } from '../../../shared/log/logger.js';
import type { CgroupUsage } from '../../../shared/process/cgroup.js';
import { mainThreadHasEnded, residentBytesNow, startTicksNow } from '../../../shared/process/proc.js';
import type { CliObserver, EndReason } from '../contract/observer.js';
import type { Child, Containment } from './containment.js';
import { signalGroup } from './group-containment.js';
import type { KillTree } from './termination.js';

const pollMs = 20;
/** Time for the kernel to reap killed processes. */
const lastCheckMs = 250;
/** Longest time for which the end of a program waits for its login renewal; no CLI takes longer. */
const maxRenewalMs = 120_000;
/** Largest tree for tree-kill, which starts a `ps` for each process. In a larger tree, only the group gets SIGTERM. */
const maxTreeKillProcesses = 16;
/** Reasons of a cut job, for which users expect that tree-kill signals the whole tree. */
const cutReasons: ReadonlySet<EndReason> = new Set(['timeout', 'cancelled', 'shutting_down']);

export interface TreeContext {
  readonly killTree: KillTree;
  readonly clock: Clock;
  readonly log: Logger;
  readonly observer: CliObserver;
  /** null if the CLI has no login that its programs renew. */
  readonly login?: RenewableLogin | null;
}

/** A login in files, which is lost if a program ends while it renews the login. */
interface RenewableLogin {
  /** Whether a program may begin a renewal now, or soon. */
  readonly mayBeRenewed: boolean;
  /** Returns whether one of these processes renews the login now. */
  isRenewedBy(pids: () => Promise<readonly number[]>): Promise<boolean>;
}

/**
 * Owns a started program with all its children, until all have ended. A process id is signalled only until the program
 * is reaped, because the kernel may then reuse the id for a foreign process.
 */
export class ProcessTree {
  readonly child: Child;
  readonly #containment: Containment;
  readonly #onGone: () => Promise<void>;
  readonly #context: TreeContext;
  readonly #startTicks: string;
  #ending: Promise<void> | undefined;
  #isPaused = false;

  /** `onGone` is called, and awaited, when all processes have ended. */
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

  /** Stops the program and its process group until `resume`. */
  pause(): void {
    this.#isPaused = true;
    this.#signal('SIGSTOP');
  }

  resume(): void {
    this.#isPaused = false;
    this.#signal('SIGCONT');
  }

  /** Returns the memory of the program itself; null if it has ended. */
  memoryBytes(): number | null {
    return residentBytesNow(this.child.pid);
  }

  /** Returns the resources that all processes have used so far; null if they are not measured. */
  usage(): CgroupUsage | null {
    return this.#containment.usage();
  }

  /**
   * Sends SIGTERM to the program and its group, and kills the rest after `graceMs`. If the program has already exited,
   * its leftovers are killed at once. A paused program is killed without SIGTERM; so is one that may renew its login, in a
   * moment without a renewal. Resolves when all processes have ended. Later calls join the first.
   */
  end(graceMs: number, reason: EndReason): Promise<void> {
    this.#ending ??= this.#end(graceMs, reason);
    return this.#ending;
  }

  async #end(graceMs: number, reason: EndReason): Promise<void> {
    await this.#stopOutsideRenewal();
    if (!this.#isPaused && !this.hasExited) await this.#terminate(graceMs, reason);
    const isForced = !this.hasExited;
    const { killed, left } = await this.#containment.clear();
    if (isForced) await this.#exited();
    const { observer, log } = this.#context;
    if (isForced) observer.killed('SIGKILL', reason);
    if (killed > 0) observer.orphansReaped(isForced ? killed - 1 : killed);
    if (left.length > 0) log.error('tree_not_gone', { processes: left.join(' ') });
    else if (this.#containment.findEscaped) this.#context.clock.after(lastCheckMs, () => void this.#logRest());
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr]) stream.destroy();
    await this.#onGone();
  }

  /**
   * Stops a program that may renew its login, so that it cannot begin a renewal between the check and its end. Waits for
   * a renewal that has begun.
   */
  async #stopOutsideRenewal(): Promise<void> {
    const { clock, login } = this.#context;
    const untilMs = clock.monotonicMs() + maxRenewalMs;
    const pids = async () => [this.child.pid, ...(await this.#containment.pids())];
    const isRenewing = async () => (await login?.isRenewedBy(pids).catch(() => false)) === true;
    while (login?.mayBeRenewed === true && !this.hasExited) {
      const isOver = clock.monotonicMs() >= untilMs;
      if (isOver || !(await isRenewing())) {
        this.pause();
        if (isOver || !(await isRenewing())) return;
      }
      if (this.#isPaused) this.resume();
      await withLimit(this.child.exited, pollMs, clock);
    }
  }

  /** Kills the program itself: just after its start, it may not have entered its cgroup yet. */
  async #exited(): Promise<void> {
    if (this.hasExited) return;
    this.#signal('SIGKILL');
    await withLimit(this.child.exited, lastCheckMs, this.#context.clock);
  }

  /** Logs processes that may have escaped, because a process group contains a program less strictly than a cgroup. */
  async #logRest(): Promise<void> {
    const { pid } = this.child;
    const escaped = await this.#containment.findEscaped?.(pid);
    if (escaped) this.#context.log.warn('tree_unclear', { group: pid, processes: escaped.join(' ') });
  }

  /** Sends SIGTERM. Resolves when all processes have ended, or after the grace. */
  async #terminate(graceMs: number, reason: EndReason): Promise<void> {
    const { clock, observer, killTree } = this.#context;
    const until = clock.monotonicMs() + graceMs;
    const { pid } = this.child;
    const isOurs = () => this.#isOurs();
    if (cutReasons.has(reason) && (await this.#isSmall()) && isOurs()) await killTree(pid, 'SIGTERM', isOurs);
    if (this.#signal('SIGTERM')) observer.killed('SIGTERM', reason);
    while (clock.monotonicMs() < until && !(this.hasExited && (await this.#containment.isQuiet(pid)))) {
      await (this.hasExited ? delay(clock, pollMs) : withLimit(this.child.exited, pollMs, clock));
    }
  }

  /** Signals the program and its group. Returns whether a process was signalled. */
  #signal(signal: NodeJS.Signals): boolean {
    return this.#isOurs() && signalGroup(this.child.pid, signal);
  }

  /**
   * Whether the process id still belongs to the program. The start time shows this, because Node reaps several programs
   * before it reports the first. If the start time is unreadable, Node's report decides.
   */
  #isOurs(): boolean {
    const startTicks = startTicksNow(this.child.pid);
    return !this.hasExited && (startTicks === '' || startTicks === this.#startTicks);
  }

  async #isSmall(): Promise<boolean> {
    return (await this.#containment.pids()).length <= maxTreeKillProcesses;
  }
}
