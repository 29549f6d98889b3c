import type { Piscina } from 'piscina';
import { orAborted, withResolvers } from '../async.js';
import { addressClient } from '../client.js';
import type { Clock } from '../clock.js';
import { FairQueue, type Member } from '../fairness/fair-queue.js';

/** Limits for waiting tasks: in total, and per line. */
const maxWaiting = 1000;
const maxWaitingInLine = 250;
/** Limit for the start of the thread, which takes seconds on a busy host. */
const startLimitMs = 10_000;

export interface ThreadSettings<Task> {
  readonly file: string;
  /** Exported function of the file. */
  readonly name: string;
  /** A trivial task, whose end shows that the thread has started. */
  readonly firstTask: Task;
  /** Time limit of a task. A task that exceeds it ends the thread. */
  readonly limitMs: number;
  /** Longest wait of a caller, including the tasks before its own; null for no limit. */
  readonly patienceMs: number | null;
  /** The thread ends when it has had no task for this long. */
  readonly idleMs: number;
  /** Memory for strings and objects. A task that exceeds it ends the thread. Without it, the default of Node applies. */
  readonly maxMegabytes?: number;
}

interface WaitingTask extends Member {
  begin(): void;
}

/** Options that decide when a waiting task runs. */
export interface TaskOptions {
  /** Line of the task. The tasks of a line run in order. */
  readonly line?: string;
  /** Whether a job with a slot waits for the task, which then goes before all other tasks. */
  readonly isUrgent?: boolean;
}

/** The error of a task that exceeds the limits for waiting tasks. */
export class TooManyTasks extends Error {}

/**
 * Owns one thread for work that would block the event loop of the primary. The thread starts when first needed. Tasks
 * run one at a time, each with a limit from its own start, so that slow starts and slow tasks of others do not reduce
 * it. Lines take turns, so that no line waits for all tasks of another.
 */
export class LimitedThread<Task, Answer> {
  readonly #settings: ThreadSettings<Task>;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  /**
   * Pool with one thread; null before the first task: piscina and its histograms take 6 MB, and many services need no
   * thread.
   */
  #pool: Piscina<Task, Answer> | null = null;
  readonly #urgent = new FairQueue<WaitingTask>();
  readonly #waiting = new FairQueue<WaitingTask>();
  readonly #lengths = new Map<string, number>();
  #isBusy = false;
  /** Controller of the running task. */
  #running: AbortController | null = null;

  /** Calls `onError` if the thread could not start, or broke. */
  constructor(settings: ThreadSettings<Task>, clock: Clock, onError: (error: unknown) => void) {
    this.#settings = settings;
    this.#clock = clock;
    this.#onError = onError;
  }

  /** Runs a task. Rejects if the thread breaks or takes too long, and with `TooManyTasks` if too many tasks wait. */
  async runTask(task: Task, { line = '', isUrgent = false }: TaskOptions = {}): Promise<Answer> {
    const isFull = this.#waiting.size >= maxWaiting || this.#lengthOf(line) >= maxWaitingInLine;
    if (isFull && !isUrgent) throw new TooManyTasks(); // the number of slots limits the urgent tasks
    const caller = new AbortController();
    const { patienceMs } = this.#settings;
    const stopTimer = patienceMs === null ? () => {} : this.#clock.after(patienceMs, () => caller.abort());
    const answer = this.#turn(line, isUrgent).then(() =>
      this.#begin(task, caller.signal).finally(() => this.#beginNext()),
    );
    try {
      return await orAborted(answer, caller.signal);
    } finally {
      stopTimer();
    }
  }

  async closeThread(): Promise<void> {
    await this.#pool?.destroy();
  }

  #open(): Piscina<Task, Answer> {
    const { file: filename, name, idleMs: idleTimeout, maxMegabytes } = this.#settings;
    const limits = maxMegabytes !== undefined && { resourceLimits: { maxOldGenerationSizeMb: maxMegabytes } };
    const threads = { minThreads: 0, maxThreads: 1, ...limits };
    const { Piscina: Pool } = require('piscina') as typeof import('piscina');
    const pool = new Pool<Task, Answer>({ filename, name, ...threads, idleTimeout, atomics: 'async' });
    return pool.on('error', (error) => {
      this.#onError(error);
      this.#running?.abort(); // otherwise this task would wait for the pool forever
    });
  }

  /** Resolves when it is the turn of this task. */
  async #turn(line: string, isUrgent: boolean): Promise<void> {
    if (this.#isBusy) {
      const { promise, resolve } = withResolvers();
      this.#lengths.set(line, this.#lengthOf(line) + 1);
      const begin = () => {
        this.#leaveLine(line);
        resolve();
      };
      (isUrgent ? this.#urgent : this.#waiting).add({ client: addressClient(line), lane: '', begin });
      return promise;
    }
    this.#isBusy = true;
  }

  #beginNext(): void {
    const next = this.#urgent.takeNext() ?? this.#waiting.takeNext();
    this.#isBusy = next !== null;
    next?.begin();
  }

  #lengthOf(line: string): number {
    return this.#lengths.get(line) ?? 0;
  }

  #leaveLine(line: string): void {
    const left = this.#lengthOf(line) - 1;
    if (left > 0) this.#lengths.set(line, left);
    else this.#lengths.delete(line);
  }

  async #begin(task: Task, caller: AbortSignal): Promise<Answer> {
    const { firstTask, limitMs } = this.#settings;
    this.#pool ??= this.#open();
    const pool = this.#pool;
    caller.throwIfAborted();
    if (pool.threads.length === 0) await this.#runWithin(pool, firstTask, startLimitMs, caller);
    caller.throwIfAborted();
    return this.#runWithin(pool, task, limitMs, caller);
  }

  async #runWithin(pool: Piscina<Task, Answer>, task: Task, limitMs: number, caller: AbortSignal): Promise<Answer> {
    const controller = new AbortController();
    const abort = () => controller.abort();
    const stopTimer = this.#clock.after(limitMs, abort);
    caller.addEventListener('abort', abort, { once: true });
    this.#running = controller;
    try {
      return await pool.run(task, { signal: controller.signal });
    } finally {
      stopTimer();
      caller.removeEventListener('abort', abort);
      this.#running = null;
    }
  }
}
