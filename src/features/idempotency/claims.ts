import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { RelayError, retryAfter, storingIsOff } from '../../shared/errors.js';
import {
  type AnswerStore,
  type ClientKey,
  type KnownKey,
  nameOfKey,
  type RecordedAnswer,
} from '../stores/contract/answers.js';
import type { ClaimItem, ClaimOrder, RecordedPieceOrder } from './shared.js';

/**
 * Limits for claims that are open at once. Each claim is an open exchange of a worker, so one client cannot reach them
 * in normal use.
 */
export interface ClaimLimits {
  readonly maxClaims: number;
  readonly maxClaimsOfClient: number;
}

export const claimLimits: ClaimLimits = { maxClaims: 10_000, maxClaimsOfClient: 2000 };

type ClaimStore = Pick<AnswerStore, 'claimOrFind' | 'readAnswer' | 'keep' | 'releaseKey'>;

type ClaimState = 'looking' | 'open' | 'recording';

/** The claim on one key while its first request is answered. */
class Claim {
  readonly number: number;
  readonly key: ClientKey;
  readonly digest: string;
  /** State of the key in the store. */
  readonly known: Promise<KnownKey>;
  state: ClaimState = 'looking';

  constructor(number: number, { client, key, digest }: ClaimOrder, store: ClaimStore, at: number) {
    this.number = number;
    this.key = { client, key };
    this.digest = digest;
    // If the store fails, the key counts as free.
    this.known = store.claimOrFind(this.key, digest, at).catch(() => ({ type: 'free' }));
  }
}

/** Owns the keys whose first request is being answered, so that no worker starts a second one. */
export class Claims {
  readonly #store: ClaimStore;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #limits: ClaimLimits;
  /** Returns the seconds until the running request is likely to have its answer. */
  readonly #retrySeconds: () => number;
  /** Whether the answers of a client may be stored. */
  readonly #mayStore: (client: ClientText) => boolean;
  readonly #byName = new Map<string, Claim>();
  readonly #byNumber = new Map<number, Claim>();
  /** Number of claims by key holder, including its sub-clients. */
  readonly #countOf = new Map<string, number>();
  #lastNumber = 0;

  constructor(
    store: ClaimStore,
    clock: Pick<Clock, 'now'>,
    retrySeconds: () => number,
    mayStore: (client: ClientText) => boolean = () => true,
    limits = claimLimits,
  ) {
    this.#store = store;
    this.#mayStore = mayStore;
    this.#clock = clock;
    this.#retrySeconds = retrySeconds;
    this.#limits = limits;
  }

  /**
   * Yields the recorded answer of the key; without one, a claim on the key that lasts until the signal is aborted.
   * Rejects with `idempotency_mismatch`, `idempotency_in_progress`, `forbidden` if the answer may not be stored, or
   * `concurrency_limited` if too many claims are open.
   */
  async *hold(order: ClaimOrder, signal: AbortSignal): AsyncGenerator<ClaimItem> {
    if (!this.#mayStore(order.client)) throw storingIsOff('answers to requests with an Idempotency-Key');
    const claim = await this.#claimed(order);
    const known = await claim.known;
    if (known.type !== 'free') {
      this.#forget(claim);
      if (known.type === 'held' || known.digest !== order.digest) throw this.#refusal(known.digest, order);
      return yield { type: 'recorded', answer: known.answer };
    }
    claim.state = 'open';
    try {
      yield { type: 'claimed', claim: claim.number };
      await aborted(signal);
    } finally {
      this.#giveUp(claim);
    }
  }

  /**
   * Records the answer to a claimed key. Returns whether it was stored. Never rejects: the answer is sent to the client
   * in any case.
   */
  async record(number: number, answer: RecordedAnswer): Promise<boolean> {
    const claim = this.#byNumber.get(number);
    if (claim?.state !== 'open' || !this.#mayStore(claim.key.client)) return false;
    claim.state = 'recording';
    try {
      await this.#store.keep(claim.key, { digest: claim.digest, answer }, this.#clock.now());
      return true;
    } catch {
      return false;
    } finally {
      this.#forget(claim);
    }
  }

  /** Reads a piece of the body of a recorded answer; empty if the answer was removed. */
  readAnswer({ client, key, digest, from }: RecordedPieceOrder): Promise<string> {
    return this.#store.readAnswer({ client, key }, digest, from);
  }

  /** Makes a claim. To stay unique, the claim is made without an `await` after the last check for another one. */
  async #claimed(order: ClaimOrder): Promise<Claim> {
    const name = nameOfKey(order);
    for (let other = this.#byName.get(name); other !== undefined; other = this.#byName.get(name)) {
      if (other.state !== 'looking') throw this.#refusal(other.digest, order);
      await other.known;
    }
    const holder = holderOf(order.client);
    const count = this.#countOf.get(holder) ?? 0;
    if (this.#byName.size >= this.#limits.maxClaims || count >= this.#limits.maxClaimsOfClient) throw tooMany();
    const claim = new Claim(++this.#lastNumber, order, this.#store, this.#clock.now());
    this.#byName.set(name, claim);
    this.#byNumber.set(claim.number, claim);
    this.#countOf.set(holder, count + 1);
    return claim;
  }

  /** Ends an open claim. A claim whose answer is being recorded ends with the recording. */
  #giveUp(claim: Claim): void {
    if (claim.state !== 'open') return;
    this.#store.releaseKey(claim.key);
    this.#forget(claim);
  }

  #refusal(digest: string, order: ClaimOrder): RelayError {
    return digest === order.digest ? inProgress(this.#retrySeconds()) : mismatch();
  }

  #forget({ number, key }: Claim): void {
    if (!this.#byNumber.delete(number)) return;
    this.#byName.delete(nameOfKey(key));
    const holder = holderOf(key.client);
    const left = (this.#countOf.get(holder) ?? 1) - 1;
    if (left > 0) this.#countOf.set(holder, left);
    else this.#countOf.delete(holder);
  }
}

function mismatch(): RelayError {
  const message = 'this Idempotency-Key was already used for a different request: send a new key with each request';
  return new RelayError('idempotency_mismatch', message);
}

function inProgress(retryAfterSeconds: number): RelayError {
  const message = 'the first request with this Idempotency-Key is still being answered';
  return new RelayError('idempotency_in_progress', message, { retryAfterSeconds });
}

function tooMany(): RelayError {
  const message = 'too many requests with an Idempotency-Key are being answered';
  return new RelayError('concurrency_limited', message, { retryAfterSeconds: retryAfter('idempotency_keys') });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
