import { type Clock, delay } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import type { Primary } from '../http/exchange.js';

/** The answer to a blocked caller is held back this long: who sends one wrong key after the other becomes slow. */
const holdMs = 250;
/** More are answered at once, so that what is held costs little. */
const maxHeld = 256;
/** A block that is not kept here is asked for again. */
const maxBlocks = 1000;

/** Owns what this worker knows of the callers that are blocked for too many wrong keys. The primary counts. */
export class WrongKeys {
  readonly #primary: Pick<Primary, 'call'>;
  readonly #clock: Clock;
  readonly #blockedUntilMs = new Map<string, number>();

  #held = 0;

  constructor(primary: Pick<Primary, 'call'>, clock: Clock) {
    this.#primary = primary;
    this.#clock = clock;
  }

  /** Counts a wrong key of this caller. Throws `rate_limited` where there were too many. A block costs the primary nothing. */
  async count(caller: string): Promise<void> {
    const known = this.#secondsLeft(caller);
    if (known > 0) return this.#refuse(known);
    const { blockedSeconds } = await this.#primary.call('wrongKey', { caller });
    if (blockedSeconds === 0) return;
    this.#keep(caller, blockedSeconds);
    await this.#refuse(blockedSeconds);
  }

  async #refuse(seconds: number): Promise<never> {
    if (this.#held < maxHeld) {
      this.#held++;
      await delay(this.#clock, holdMs);
      this.#held--;
    }
    throw blocked(seconds);
  }

  #secondsLeft(caller: string): number {
    const until = this.#blockedUntilMs.get(caller) ?? 0;
    return Math.ceil((until - this.#clock.monotonicMs()) / 1000);
  }

  #keep(caller: string, seconds: number): void {
    if (this.#blockedUntilMs.size >= maxBlocks) this.#blockedUntilMs.clear();
    this.#blockedUntilMs.set(caller, this.#clock.monotonicMs() + seconds * 1000);
  }
}

function blocked(retryAfterSeconds: number): RelayError {
  const message = 'too many wrong API keys came from here: a right one is still accepted';
  return new RelayError('rate_limited', message, { retryAfterSeconds });
}
