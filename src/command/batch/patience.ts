import { orAborted } from '../../shared/async.js';
import { type Clock, delay } from '../../shared/clock.js';
import { CommandError } from '../base/errors.js';
import { pauseAfter } from './ends.js';

const firstWaitMs = 500;
const longestWaitMs = 30_000;

/** Repeats calls while the service is unreachable or refuses them, and knows the reason. */
export class Patience {
  readonly #clock: Clock;
  #heldBecause: string | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Error that the last call had; null if it has succeeded. */
  get heldBecause(): string | null {
    return this.#heldBecause;
  }

  /** Rejects if the signal aborts, or with an error that a repetition of the call would get, too. */
  async persist<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let waits = 0; ; waits++) {
      try {
        const result = await call();
        this.#heldBecause = null;
        return result;
      } catch (error) {
        const isTemporary = error instanceof CommandError && pauseAfter(error) !== null;
        if (signal.aborted || !isTemporary) throw error;
        await this.wait(error, waits, signal);
      }
    }
  }

  /** Waits for the time that the error names, or longer each time. */
  async wait(error: CommandError, waits: number, signal: AbortSignal): Promise<void> {
    const { seconds } = pauseAfter(error) ?? {};
    const ms = seconds === undefined ? Math.min(firstWaitMs * 2 ** waits, longestWaitMs) : seconds * 1000;
    this.#heldBecause = error.message.split('\n')[0] ?? '';
    await orAborted(delay(this.#clock, ms), signal);
  }
}
