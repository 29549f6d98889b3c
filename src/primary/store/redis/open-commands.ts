import { type Clock, endOfLoopTurn } from '../../../shared/clock.js';
import { withResolvers } from '../../../shared/resolvers.js';
import { TookTooLong } from './redis-faults.js';

/** Owns which commands Redis has not answered yet, whether or not anybody still waits for them. */
export class OpenCommands {
  readonly #clock: Clock;
  /** In the order in which they were sent. */
  readonly #open = new Set<{ readonly begunMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether Redis has let one of them wait for so long. */
  isStalled(limitMs: number): boolean {
    const [oldest] = this.#open;
    return oldest !== undefined && this.#clock.monotonicMs() - oldest.begunMs >= limitMs;
  }

  /** Rejects as `send` does, and after that time. */
  async limited<T>(send: () => Promise<T>, limitMs: number): Promise<T> {
    const { promise: late, reject } = withResolvers<never>();
    const giveUp = () => reject(new TookTooLong(limitMs));
    // Where this process has stalled, the timer is due before the answer is read that has come long ago.
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
