import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import treeKill from 'tree-kill';
import { type Clock, delay } from '../../shared/clock.js';
import { cookieName } from '../../shared/cookie.js';
import { RelayError } from '../../shared/errors.js';
import type { Logger } from '../../shared/logger.js';
import { isZombie } from '../../shared/proc/proc-fs.js';
import type { ProcessScanner } from '../../shared/proc/process-scanner.js';
import { sweep } from '../../shared/proc/sweep.js';
import type { CliObserver, EndReason } from './cli-observer.js';
import { guardChildren } from './guarded-children.js';

/** What the host offers to end a process with, found once at start. */
export interface HostTools {
  /** A `setpriv` that ties a program's life to ours. */
  readonly setpriv: string | null;
  /** tree-kill asks `ps`. */
  readonly hasPs: boolean;
}

export interface TreeContext {
  readonly clock: Clock;
  readonly scanner: ProcessScanner;
  readonly tools: HostTools;
  readonly log: Logger;
  readonly observer: CliObserver;
}

export interface ProgramStart {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  readonly cookie: string;
}

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const groupPollMs = 20;
const maxTreeKillProcesses = 16;
const treeKillLimitMs = 200;
const sweepLimitMs = 10_000;

/**
 * Owns one program and everything it has started, from its start until nothing of it is left.
 * It runs in a process group of its own and carries a cookie in its environment, which its children inherit.
 */
export class ProcessTree {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves when the program has been started; rejects with `spawn_error`. */
  readonly started: Promise<void>;
  /** Resolves when the program itself has exited; its children may live on. */
  readonly exited: Promise<ExitStatus>;
  readonly #context: TreeContext;
  readonly #isOurs: (cookie: string) => boolean;
  /** Resolves when no process of the tree is left. */
  readonly ended: Promise<void>;
  #markEnded: () => void = () => {};
  #hasExited = false;
  #ending: Promise<void> | undefined;

  /** Throws `spawn_error` for what the system refuses at once. */
  constructor(start: ProgramStart, context: TreeContext) {
    this.#context = context;
    this.#isOurs = (cookie) => cookie === start.cookie;
    this.child = spawnProgram(start, context.tools);
    this.started = new Promise((resolve, reject) => {
      this.child.once('spawn', resolve);
      this.child.once('error', (error) => {
        context.observer.exited('spawn_error');
        reject(spawnError(start.program, error));
      });
    });
    this.exited = new Promise((resolve) => {
      this.child.once('exit', (code, signal) => {
        this.#hasExited = true;
        context.observer.exited(code === 0 ? 'ok' : signal === null ? 'nonzero' : 'signal');
        resolve({ code, signal });
      });
    });
    this.ended = new Promise((resolve) => {
      this.#markEnded = resolve;
    });
    this.started.catch(() => {}); // whoever awaits it is told; a tree that is ended first is not
  }

  /** Whether the program has died, even if its exit has not been told yet. */
  async hasDied(): Promise<boolean> {
    const { pid } = this.child;
    return this.#hasExited || pid === undefined || isZombie(pid);
  }

  /** Resolves when no process of the tree is left. SIGTERM, then after `graceMs` SIGKILL. Later calls join the first. */
  end(graceMs: number, reason: EndReason): Promise<void> {
    this.#ending ??= this.#end(graceMs, reason);
    return this.#ending;
  }

  async #end(graceMs: number, reason: EndReason): Promise<void> {
    const { pid } = this.child;
    if (pid !== undefined) {
      this.#killGroup(pid, 'SIGTERM', reason);
      if (!(await this.#groupGone(pid, graceMs / 2))) await this.#force(pid, graceMs / 2, reason);
      await this.#sweep();
    }
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr]) stream.destroy();
    this.#markEnded();
  }

  #killGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL', reason: EndReason): void {
    if (this.#signalGroup(pid, signal)) this.#context.observer.killed(signal, reason);
  }

  /** The rest of the grace is time enough to see how large the tree is. */
  async #force(pid: number, graceMs: number, reason: EndReason): Promise<void> {
    const [{ pids }] = await Promise.all([this.#context.scanner.find(this.#isOurs), this.#groupGone(pid, graceMs)]);
    if (!this.#hasExited && pids.length <= maxTreeKillProcesses) await this.#treeKill(pid);
    this.#killGroup(pid, 'SIGKILL', reason);
  }

  /** Returns whether the group had a member. A group that is empty is not signalled again: its number may be reused. */
  #signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(-pid, signal);
    } catch {
      return false;
    }
  }

  async #groupGone(pid: number, limitMs: number): Promise<boolean> {
    const until = this.#context.clock.monotonicMs() + limitMs;
    while (this.#signalGroup(pid, 0) && this.#context.clock.monotonicMs() < until) {
      const pause = delay(this.#context.clock, groupPollMs);
      await (this.#hasExited ? pause : Promise.race([this.exited, pause]));
    }
    return !this.#signalGroup(pid, 0);
  }

  /** Finds descendants that have shed the cookie. It starts a `ps` for each process, so a large tree is left to the sweep. */
  async #treeKill(pid: number): Promise<void> {
    const { clock, tools } = this.#context;
    if (!tools.hasPs) return;
    const killed = new Promise<void>((resolve) => {
      const done = () => resolve();
      guardChildren(() => treeKill(pid, 'SIGKILL', done), done); // a host at its process limit starts no `ps`
    });
    await Promise.race([killed, delay(clock, treeKillLimitMs)]);
  }

  async #sweep(): Promise<void> {
    const { clock, scanner, log, observer } = this.#context;
    const { killed, left } = await sweep(scanner, this.#isOurs, clock, sweepLimitMs);
    observer.orphansReaped(killed);
    if (left.length > 0) log.error('tree_not_gone', { processes: left.join(' ') });
  }
}

/** The command that starts the program so that it does not outlive us. */
export function tied(setpriv: string, program: string, args: readonly string[]): [string, readonly string[]] {
  return [setpriv, ['--pdeathsig', 'KILL', '--', program, ...args]];
}

function spawnProgram(start: ProgramStart, { setpriv }: HostTools): ChildProcessWithoutNullStreams {
  const [program, args] = setpriv === null ? [start.program, start.args] : tied(setpriv, start.program, start.args);
  try {
    return spawn(program, args, {
      cwd: start.workingDirectory,
      env: { ...start.env, [cookieName]: start.cookie },
      detached: true,
      stdio: 'pipe',
    });
  } catch (error) {
    throw spawnError(start.program, error as NodeJS.ErrnoException);
  }
}

/** Why a program can't be started, in words. Its path is the operator's business and stays out. */
export function spawnError(program: string, error: NodeJS.ErrnoException): RelayError {
  const name = program.split('/').at(-1);
  return new RelayError('spawn_error', `the model CLI ${name} could not be started: ${error.code ?? error.message}`);
}
