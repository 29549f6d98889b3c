import { Observable } from './observable.mjs';
import type { PageClock } from './page-clock.mjs';

type LinkState = 'up' | 'gone';

const firstWaitMs = 500;
const longestWaitMs = 4000;

/** Tracks whether the server answers. After a failure, polls the server until it does. */
export class Link {
  readonly state = new Observable<LinkState>('up');
  readonly #isThere: () => Promise<boolean>;
  readonly #clock: PageClock;

  /** `isThere` resolves with whether the server can be reached. */
  constructor(isThere: () => Promise<boolean>, clock: PageClock) {
    this.#isThere = isThere;
    this.#clock = clock;
  }

  lost(): void {
    if (this.state.value === 'gone') return;
    this.state.set('gone');
    this.#tryLater(firstWaitMs);
  }

  found(): void {
    this.state.set('up');
  }

  #tryLater(waitMs: number): void {
    this.#clock.after(waitMs, () => void this.#try(waitMs));
  }

  async #try(waitMs: number): Promise<void> {
    if (await this.#isThere()) this.found();
    if (this.state.value === 'gone') this.#tryLater(Math.min(2 * waitMs, longestWaitMs));
  }
}

/** State of the key dialog: not shown, shown without a key, or shown again after a key was rejected. */
type KeyQuestion = 'none' | 'first' | 'again';

const entry = 'prompt-relay-key';

/** Owns the API key of this browser tab, and the dialog for it. The key is sent only in a header of requests. */
export class KeyKeeper {
  readonly question = new Observable<KeyQuestion>('none');
  readonly hasKey: Observable<boolean>;
  /** Message of the service about the rejected key; null for none. */
  refusal: string | null = null;
  readonly #storage: Storage;
  #waiting: ((hasKey: boolean) => void)[] = [];

  constructor(storage: Storage) {
    this.#storage = storage;
    this.hasKey = new Observable(this.key !== null);
  }

  get key(): string | null {
    return this.#storage.getItem(entry);
  }

  /**
   * Resolves with true once there is another key than the rejected one, with false if the user enters none. `refusal`:
   * the message of the service.
   */
  ask(refused: string | null, refusal: string | null = null): Promise<boolean> {
    if (this.key !== refused) return Promise.resolve(true);
    this.refusal = refusal;
    this.question.set(refused === null ? 'first' : 'again');
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  enter(key: string): void {
    this.#storage.setItem(entry, key);
    this.hasKey.set(true);
    this.#answer(true);
  }

  dismiss(): void {
    this.#answer(false);
  }

  forget(): void {
    this.#storage.removeItem(entry);
    this.hasKey.set(false);
  }

  #answer(hasKey: boolean): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.question.set('none');
    for (const resolve of waiting) resolve(hasKey);
  }
}
