import { createHash, createHmac, randomBytes } from 'node:crypto';
import { type Clock, delay } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import type { WorkerKey } from '../../shared/ipc/protocol.js';
import type { Primary } from '../http/exchange.js';

/** Owns the API keys that this worker accepts. */
export class KeyRing {
  /** By the mark of their digests; null if requests need no key. */
  #accepted: ReadonlyMap<string, WorkerKey> | null = null;
  readonly #secret = randomBytes(32);
  #isReplaced = false;

  /** Sets the keys of the start, unless newer ones have arrived already. */
  begin(keys: readonly WorkerKey[] | null): void {
    if (!this.#isReplaced) this.replace(keys);
  }

  replace(keys: readonly WorkerKey[] | null): void {
    this.#isReplaced = true;
    this.#accepted =
      keys && new Map(keys.toReversed().map((key) => [this.#markOf(Buffer.from(key.digest, 'hex')), key]));
  }

  /** Whether requests need a key. */
  get isNeeded(): boolean {
    return this.#accepted !== null;
  }

  find(presented: string): WorkerKey | null {
    const digest = createHash('sha256').update(presented).digest();
    return this.#accepted?.get(this.#markOf(digest)) ?? null;
  }

  /** Nobody knows the mark of a digest beforehand, so the time of a comparison reveals nothing of the keys. */
  #markOf(digest: Buffer): string {
    return createHmac('sha256', this.#secret).update(digest).digest('base64');
  }
}

/** The answer to a blocked caller waits this long: a client that sends one wrong key after the other becomes slow. */
const delayMs = 250;
/** More are answered at once, so that what waits costs little. */
const maxDelayed = 256;
/** The primary is asked again for a block that is not known here. */
const maxBlocks = 1000;

/** Owns what this worker knows of the callers that are blocked for too many wrong keys. The primary counts. */
export class WrongKeys {
  readonly #primary: Pick<Primary, 'call'>;
  readonly #clock: Clock;
  readonly #blockedUntilMs = new Map<string, number>();

  #delayed = 0;

  constructor(primary: Pick<Primary, 'call'>, clock: Clock) {
    this.#primary = primary;
    this.#clock = clock;
  }

  /** Counts a wrong key of this caller. Throws `rate_limited` after too many. A known block is not counted at the primary. */
  async count(caller: string): Promise<void> {
    const known = this.#secondsLeft(caller);
    if (known > 0) return this.#refuse(known);
    const { blockedSeconds } = await this.#primary.call('wrongKey', { caller });
    if (blockedSeconds === 0) return;
    this.#remember(caller, blockedSeconds);
    await this.#refuse(blockedSeconds);
  }

  async #refuse(seconds: number): Promise<never> {
    if (this.#delayed < maxDelayed) {
      this.#delayed++;
      await delay(this.#clock, delayMs);
      this.#delayed--;
    }
    throw blocked(seconds);
  }

  #secondsLeft(caller: string): number {
    const until = this.#blockedUntilMs.get(caller) ?? 0;
    return Math.ceil((until - this.#clock.monotonicMs()) / 1000);
  }

  #remember(caller: string, seconds: number): void {
    if (this.#blockedUntilMs.size >= maxBlocks) this.#blockedUntilMs.clear();
    this.#blockedUntilMs.set(caller, this.#clock.monotonicMs() + seconds * 1000);
  }
}

function blocked(retryAfterSeconds: number): RelayError {
  const message = 'too many wrong API keys came from here: a right one is still accepted';
  return new RelayError('rate_limited', message, { retryAfterSeconds });
}
