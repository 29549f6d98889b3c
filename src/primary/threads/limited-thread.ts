import { Piscina } from 'piscina';
import type { Clock } from '../../shared/clock.js';

/** Tasks that may wait for the thread. */
const maxWaiting = 1000;
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

/**
 * Owns one thread for what would keep the primary's loop busy. It is started when it is first needed. One task runs at a
 * time, and its limit counts from its own begin: a slow start, or a slow task of somebody else, is not held against it.
 */
export class LimitedThread<Task, Answer> {
  readonly #settings: ThreadSettings<Task>;
  readonly #clock: Clock;
  readonly #pool: Piscina<Task, Answer>;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** Of the task that runs. */
  #running: AbortController | null = null;

  /** `onError` hears of a thread that could not start, or broke. */
  constructor(settings: ThreadSettings<Task>, clock: Clock, onError: (error: unknown) => void) {
    const { file: filename, name, idleMs: idleTimeout } = settings;
    this.#settings = settings;
    this.#clock = clock;
    const threads = { minThreads: 0, maxThreads: 1 };
    this.#pool = new Piscina<Task, Answer>({ filename, name, ...threads, idleTimeout, atomics: 'async' });
    this.#pool.on('error', (error) => {
      onError(error);
      this.#running?.abort(); // the pool itself would wait for ever
    });
  }

  /** Rejects where the thread breaks, or takes too long. */
  async run(task: Task): Promise<Answer> {
    if (this.#waiting >= maxWaiting) throw new Error('too many tasks wait for the thread');
    const caller = new AbortController();
    const { patienceMs } = this.#settings;
    const stopTimer = patienceMs === null ? () => {} : this.#clock.after(patienceMs, () => caller.abort());
    this.#waiting++;
    const mine = this.#last.then(() => this.#begin(task, caller.signal));
    this.#last = mine.catch(() => {});
    try {
      return await Promise.race([mine, aborted(caller.signal)]);
    } finally {
      stopTimer();
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #begin(task: Task, caller: AbortSignal): Promise<Answer> {
    this.#waiting--;
    const { firstTask, limitMs } = this.#settings;
    caller.throwIfAborted();
    if (this.#pool.threads.length === 0) await this.#limited(firstTask, startLimitMs, caller);
    caller.throwIfAborted();
    return this.#limited(task, limitMs, caller);
  }

  async #limited(task: Task, limitMs: number, caller: AbortSignal): Promise<Answer> {
    const controller = new AbortController();
    const abort = () => controller.abort();
    const stopTimer = this.#clock.after(limitMs, abort);
    caller.addEventListener('abort', abort, { once: true });
    this.#running = controller;
    try {
      return await this.#pool.run(task, { signal: controller.signal });
    } finally {
      stopTimer();
      caller.removeEventListener('abort', abort);
      this.#running = null;
    }
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
