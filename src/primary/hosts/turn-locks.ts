import { orAborted } from '../../shared/async/promises.js';
import { type Clock, delay, type StopTimer } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import { noLock, type TurnLock } from '../conversations/turn-gate.js';
import type { SharedConversations, SharedState } from './redis-conversations.js';

/** While another host has its turn, it is asked again after this time, and each time half as long again. */
const firstWaitMs = 25;
const longestWaitMs = 250;
const renewalsInTime = 3;

type LockStore = Pick<SharedConversations, 'enter' | 'renew' | 'release' | 'lockMs'>;

/**
 * Owns the turn locks of this host. One that was taken before an admission is offered to the turn that is admitted
 * next, and released if none is.
 */
export class TurnLocks {
  readonly #store: LockStore;
  readonly #clock: Clock;
  /** By conversation. */
  readonly #offered = new Map<string, number>();

  constructor(store: LockStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  isOffered(id: string): boolean {
    return this.#offered.has(id);
  }

  offer(id: string, token: number): void {
    this.#offered.set(id, token);
  }

  /** Does nothing where a turn has taken it. */
  giveUp(id: string, token: number): void {
    if (this.#offered.get(id) !== token) return;
    this.#offered.delete(id);
    this.#store.release(id, token);
  }

  /** The lock that is offered, or none. */
  take(id: string): TurnLock {
    const token = this.#offered.get(id);
    this.#offered.delete(id);
    return token === undefined ? noLock : this.#held(id, token);
  }

  /**
   * Waits until no other host has it. Resolves with where the conversation stands then, and with null where it is gone.
   * Rejects with `store_unavailable`, or with the signal's reason.
   */
  async acquire(id: string, client: string, signal: AbortSignal): Promise<(SharedState & { lock: TurnLock }) | null> {
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 1.5, longestWaitMs)) {
      const state = await this.#store.enter(id, client, true);
      if (state === null) return null;
      const lock = state.token === null ? null : this.#held(id, state.token);
      if (signal.aborted) lock?.release();
      signal.throwIfAborted();
      if (lock !== null) return { ...state, lock };
      await orAborted(delay(this.#clock, waitMs), signal);
    }
  }

  #held(id: string, token: number): TurnLock {
    return new RenewedLock(id, token, this.#store, this.#clock);
  }
}

/** Owns that a lock is renewed as long as it is held. A renewal that fails says nothing: the commit will tell. */
class RenewedLock implements TurnLock {
  readonly token: number;
  readonly #id: string;
  readonly #store: LockStore;
  readonly #stopTimer: StopTimer;
  #onLost: (reason: Error) => void = () => {};
  #isHeld = true;

  constructor(id: string, token: number, store: LockStore, clock: Clock) {
    this.#id = id;
    this.token = token;
    this.#store = store;
    this.#stopTimer = clock.every(store.lockMs / renewalsInTime, () => void this.#renew());
  }

  onLost(listener: (reason: Error) => void): void {
    this.#onLost = listener;
  }

  release(): void {
    if (!this.#isHeld) return;
    this.spent();
    this.#store.release(this.#id, this.token);
  }

  spent(): void {
    this.#isHeld = false;
    this.#stopTimer();
  }

  async #renew(): Promise<void> {
    const isMine = await this.#store.renew(this.#id, this.token).catch(() => true);
    if (isMine || !this.#isHeld) return;
    this.spent();
    this.#onLost(lostLock());
  }
}

function lostLock(): RelayError {
  const message = 'this host lost its turn lock, and the conversation may have gone on elsewhere';
  return new RelayError('store_unavailable', message, { retryAfterSeconds: 1 });
}
