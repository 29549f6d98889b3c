import { Piscina } from 'piscina';
import type { Clock } from '../../shared/clock.js';

/** Tasks that may wait for the thread. */
const maxQueued = 1000;

export interface ThreadSettings {
  readonly file: string;
  /** The function of that file. */
  readonly name: string;
  /** No task takes longer: the thread ends with it. */
  readonly limitMs: number;
  /** The thread ends when it had no task for this long. */
  readonly idleMs: number;
}

/** Owns one thread for what would keep the primary's loop busy. It is started when it is first needed. */
export class LimitedThread<Task, Answer> {
  readonly #pool: Piscina<Task, Answer>;
  readonly #limitMs: number;
  readonly #clock: Clock;
  /** One for each task that is under way. */
  readonly #open = new Set<AbortController>();

  /** `onError` hears of a thread that could not start, or broke. */
  constructor({ file, name, limitMs, idleMs }: ThreadSettings, clock: Clock, onError: (error: unknown) => void) {
    this.#limitMs = limitMs;
    this.#clock = clock;
    this.#pool = new Piscina<Task, Answer>({
      filename: file,
      name,
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: idleMs,
      maxQueue: maxQueued,
      atomics: 'async',
    });
    this.#pool.on('error', (error) => {
      onError(error);
      for (const task of this.#open) task.abort(); // the pool itself would wait for ever
    });
  }

  /** Rejects where the thread breaks, or takes too long. */
  async run(task: Task, harmless: Task): Promise<Answer> {
    const controller = new AbortController();
    const stopTimer = this.#clock.after(this.#limitMs, () => {
      controller.abort();
      void this.#pool.run(harmless).catch(() => {}); // the thread goes with the task: only a new one has the pool start another
    });
    this.#open.add(controller);
    try {
      return await this.#pool.run(task, { signal: controller.signal });
    } finally {
      stopTimer();
      this.#open.delete(controller);
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}
