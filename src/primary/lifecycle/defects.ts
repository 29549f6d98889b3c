import type { Clock } from '../../shared/clock.js';
import { describeError, type Logger } from '../../shared/log/logger.js';

/** Maximum of log records of defects in one minute. */
const maxLogged = 10;
const minuteMs = 60_000;
/** Time for which a defect of the primary makes the service degraded. */
const shownMs = 10 * minuteMs;

/** Time of a defect. */
interface SeenDefect {
  readonly monotonicMs: number;
  /** Time in milliseconds since the epoch. */
  readonly at: number;
}

/**
 * Counts and logs the exceptions that no code has caught. After the start, such an exception does not end the service: all
 * other jobs continue, and the affected job ends at its time limit at the latest.
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

  /** Records an exception of the primary. */
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

  /** Counts an exception that a worker has logged. */
  countWorker(): void {
    this.#counts.worker++;
  }

  /** Number of exceptions by the role of the process. */
  get counts(): Readonly<Record<'primary' | 'worker', number>> {
    return this.#counts;
  }

  /** Time of the primary's last exception, in milliseconds since the epoch; null after ten minutes. */
  get lastAt(): number | null {
    const isRecent = this.#last !== null && this.#clock.monotonicMs() - this.#last.monotonicMs < shownMs;
    return isRecent ? (this.#last?.at ?? null) : null;
  }
}
