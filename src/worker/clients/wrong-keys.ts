import type { Clock } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import type { Primary } from '../http/exchange.js';

/** A block that is not kept here is asked for again. */
const maxBlocks = 1000;

/** Owns what this worker knows of the callers that are blocked for too many wrong keys. The primary counts. */
export class WrongKeys {
  readonly #primary: Pick<Primary, 'call'>;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #blockedUntilMs = new Map<string, number>();

  constructor(primary: Pick<Primary, 'call'>, clock: Pick<Clock, 'monotonicMs'>) {
    this.#primary = primary;
    this.#clock = clock;
  }

  /** Counts a wrong key of this caller. Throws `rate_limited` where there were too many. A block costs the primary nothing. */
  async count(caller: string): Promise<void> {
    const known = this.#secondsLeft(caller);
    if (known > 0) throw blocked(known);
    const { blockedSeconds } = await this.#primary.call('wrongKey', { caller });
    if (blockedSeconds === 0) return;
    this.#keep(caller, blockedSeconds);
    throw blocked(blockedSeconds);
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
