import { Observable } from './observable.mjs';
import type { PageClock } from './page-clock.mjs';

export type LinkState = 'up' | 'gone';

const firstWaitMs = 500;
const longestWaitMs = 4000;

/** Owns whether the server answers. Once it does not, asks again and again until it does. */
export class Link {
  readonly state = new Observable<LinkState>('up');
  readonly #isThere: () => Promise<boolean>;
  readonly #clock: PageClock;

  /** `isThere` is whether the server answers, whatever it says. */
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
