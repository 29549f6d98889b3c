import type { Clock } from '../../shared/clock.js';
import { describeError, type Logger } from '../../shared/log/logger.js';

/** Records in the log, within a minute. */
const maxLogged = 10;
const minuteMs = 60_000;
/** The service is degraded this long after a defect of the primary. */
const shownMs = 10 * minuteMs;

interface SeenDefect {
  readonly monotonicMs: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * Owns what is known of exceptions that nothing has caught. None of them ends a service that has started: all other jobs
 * continue, and the job in which it happened ends at its time limit at the latest.
 */
export class Defects {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #counts = { primary: 0, worker: 0 };
  #last: SeenDefect | null = null;
  #logged = 0;
  #minuteBeganMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  readonly record = (thrown: unknown): void => {
    this.#counts.primary++;
    const monotonicMs = this.#clock.monotonicMs();
    this.#last = { monotonicMs, at: this.#clock.now() };
    if (monotonicMs - this.#minuteBeganMs >= minuteMs) {
      this.#minuteBeganMs = monotonicMs;
      this.#logged = 0;
    }
    if (++this.#logged <= maxLogged) this.#log.error('internal_error', { error: describeError(thrown) });
  };

  /** A worker has logged one. */
  countWorker(): void {
    this.#counts.worker++;
  }

  /** By the role of the process. */
  get counts(): Readonly<Record<'primary' | 'worker', number>> {
    return this.#counts;
  }

  /** When the last one of the primary happened, milliseconds since the epoch; null if that is long ago. */
  get lastAt(): number | null {
    const isRecent = this.#last !== null && this.#clock.monotonicMs() - this.#last.monotonicMs < shownMs;
    return isRecent ? (this.#last?.at ?? null) : null;
  }
}
