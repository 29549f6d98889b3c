import type { Piscina } from 'piscina';
import { orAborted, withResolvers } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import { FairQueue, type Member } from '../fairness/fair-queue.js';

/** Tasks that may wait for the thread: all, and those of one line. */
const maxWaiting = 1000;
const maxWaitingInLine = 250;
/** On a busy host a thread takes seconds to start. */
const startLimitMs = 10_000;

export interface ThreadSettings<Task> {
  readonly file: string;
  /** The function of that file. */
  readonly name: string;
  /** Is done in no time, so that the thread has started. */
  readonly firstTask: Task;
  /** No task runs for longer: the thread ends with it. */
  readonly limitMs: number;
  /** Nobody waits for longer, however long the tasks before take; null: without a limit. */
  readonly patienceMs: number | null;
  /** The thread ends when it had no task for this long. */
  readonly idleMs: number;
}

interface WaitingTask extends Member {
  begin(): void;
}

/** Who waits for a task. */
export interface TaskOptions {
  /** The tasks of each line are done in order. */
  readonly line?: string;
  /** A job that has a slot waits for it: it goes before all tasks that are not urgent. */
  readonly isUrgent?: boolean;
}

/** More tasks wait than may. */
export class TooManyTasks extends Error {}

/**
 * Owns one thread for what would keep the primary's loop busy. It is started when it is first needed. One task runs at a
 * time, and its limit counts from its own begin: a slow start, or a slow task of somebody else, is not held against it.
 * The tasks wait in lines, from which they are taken in turn: so no line waits for all of another.
 */
export class LimitedThread<Task, Answer> {
  readonly #settings: ThreadSettings<Task>;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  /** null before the first task: piscina and the histograms of a pool take 6 MB, and many services never need a thread. */
  #pool: Piscina<Task, Answer> | null = null;
  readonly #urgent = new FairQueue<WaitingTask>();
  readonly #waiting = new FairQueue<WaitingTask>();
  readonly #lengths = new Map<string, number>();
  #isBusy = false;
  /** Of the task that runs. */
  #running: AbortController | null = null;

  /** `onError` hears of a thread that could not start, or broke. */
  constructor(settings: ThreadSettings<Task>, clock: Clock, onError: (error: unknown) => void) {
    this.#settings = settings;
    this.#clock = clock;
    this.#onError = onError;
  }

  /** Rejects where the thread breaks, or takes too long; with `TooManyTasks` where as many wait already. */
  async run(task: Task, { line = '', isUrgent = false }: TaskOptions = {}): Promise<Answer> {
    const isFull = this.#waiting.size >= maxWaiting || this.#lengthOf(line) >= maxWaitingInLine;
    if (isFull && !isUrgent) throw new TooManyTasks(); // the slots bound the urgent ones
    const caller = new AbortController();
    const { patienceMs } = this.#settings;
    const stopTimer = patienceMs === null ? () => {} : this.#clock.after(patienceMs, () => caller.abort());
    const mine = this.#turn(line, isUrgent).then(() => this.#begin(task, caller.signal).finally(() => this.#next()));
    try {
      return await orAborted(mine, caller.signal);
    } finally {
      stopTimer();
    }
  }

  async close(): Promise<void> {
    await this.#pool?.destroy();
  }

  #open(): Piscina<Task, Answer> {
    const { file: filename, name, idleMs: idleTimeout } = this.#settings;
    const threads = { minThreads: 0, maxThreads: 1 };
    const { Piscina: Pool } = require('piscina') as typeof import('piscina');
    const pool = new Pool<Task, Answer>({ filename, name, ...threads, idleTimeout, atomics: 'async' });
    return pool.on('error', (error) => {
      this.#onError(error);
      this.#running?.abort(); // the pool itself would wait for ever
    });
  }

  /** Resolves when the thread is free for this line. */
  async #turn(line: string, isUrgent: boolean): Promise<void> {
    if (this.#isBusy) {
      const { promise, resolve } = withResolvers();
      this.#lengths.set(line, this.#lengthOf(line) + 1);
      const begin = () => {
        this.#left(line);
        resolve();
      };
      (isUrgent ? this.#urgent : this.#waiting).add({ client: line, lane: '', begin });
      return promise;
    }
    this.#isBusy = true;
  }

  #next(): void {
    const next = this.#urgent.takeNext() ?? this.#waiting.takeNext();
    this.#isBusy = next !== null;
    next?.begin();
  }

  #lengthOf(line: string): number {
    return this.#lengths.get(line) ?? 0;
  }

  #left(line: string): void {
    const left = this.#lengthOf(line) - 1;
    if (left > 0) this.#lengths.set(line, left);
    else this.#lengths.delete(line);
  }

  async #begin(task: Task, caller: AbortSignal): Promise<Answer> {
    const { firstTask, limitMs } = this.#settings;
    this.#pool ??= this.#open();
    const pool = this.#pool;
    caller.throwIfAborted();
    if (pool.threads.length === 0) await this.#limited(pool, firstTask, startLimitMs, caller);
    caller.throwIfAborted();
    return this.#limited(pool, task, limitMs, caller);
  }

  async #limited(pool: Piscina<Task, Answer>, task: Task, limitMs: number, caller: AbortSignal): Promise<Answer> {
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
