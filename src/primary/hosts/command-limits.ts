import { withResolvers } from '../../shared/async/promises.js';
import { type Clock, endOfLoopTurn } from '../../shared/clock.js';
import { TookTooLong } from './redis-faults.js';

/** A command may wait in the socket of a Redis that has stopped. It must be refused there before its caller gives up. */
const marginShare = 0.9;
const ticksPerMs = 100;

/** Owns which commands Redis has not answered yet, whether or not their callers still wait. */
export class OpenCommands {
  readonly #clock: Clock;
  /** In the order in which they were sent. */
  readonly #open = new Set<{ readonly begunMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the oldest of them has waited for so long. */
  isStalled(limitMs: number): boolean {
    const [oldest] = this.#open;
    return oldest !== undefined && this.#clock.monotonicMs() - oldest.begunMs >= limitMs;
  }

  /** Rejects as `send` does, and after that time. */
  async limited<T>(send: () => Promise<T>, limitMs: number): Promise<T> {
    const { promise: late, reject } = withResolvers<never>();
    const giveUp = () => reject(new TookTooLong(limitMs));
    // After a stall of this process, the timer is due before an answer is read that came long ago.
    const stopTimer = this.#clock.after(limitMs, () => void endOfLoopTurn().then(giveUp));
    try {
      return await Promise.race([this.#counted(send()), late]);
    } finally {
      stopTimer();
    }
  }

  #counted<T>(answer: Promise<T>): Promise<T> {
    const entry = { begunMs: this.#clock.monotonicMs() };
    this.#open.add(entry);
    const done = () => void this.#open.delete(entry);
    answer.then(done, done);
    return answer;
  }
}

/** Owns the time at Redis, in ticks, as of its last answer. Clocks of hosts need not agree. */
export class RedisTime {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** null before the first answer. */
  #aheadMs: number | null = null;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** The time in an answer that has just arrived. */
  is(ticks: number): void {
    this.#aheadMs = ticks / ticksPerMs - this.#clock.monotonicMs();
  }

  /** The time after which nobody waits for a command that is sent now and may take so long. */
  after(limitMs: number): number {
    if (this.#aheadMs === null) return Number.MAX_SAFE_INTEGER;
    return Math.floor((this.#clock.monotonicMs() + this.#aheadMs + limitMs * marginShare) * ticksPerMs);
  }
}
