import { type Clock, delay } from '../../shared/clock.js';

/** One that waits. Returns whether this position was news to it. */
interface Waiting {
  onPosition(position: number): boolean;
}

/** All who wait, each with its position. Is left alone for a while now and then, and goes on with what is there by then. */
export type Positions = Iterator<readonly [waiting: Waiting, position: number]>;

/** Time before a pass and between two slices of one, milliseconds. */
const pauseMs = 50;
/** Each news is a message to a worker and a write to a client, and everything else waits for those of one slice. */
const maxNews = 32;
/** To look at one without news costs little, but not nothing. */
const maxLooks = 2000;

/**
 * Owns when those who wait are told their positions: in passes over all of them, cut into slices. A long queue is told
 * less often than a short one, and costs no more. A change during a pass makes for another one.
 */
export class PositionTeller {
  readonly #clock: Clock;
  readonly #positions: () => Positions;
  #hasNews = false;
  #isTelling = false;

  constructor(clock: Clock, positions: () => Positions) {
    this.#clock = clock;
    this.#positions = positions;
  }

  changed(): void {
    this.#hasNews = true;
    if (!this.#isTelling) void this.#tell();
  }

  async #tell(): Promise<void> {
    this.#isTelling = true;
    while (this.#hasNews) {
      await delay(this.#clock, pauseMs);
      this.#hasNews = false;
      const pass = this.#positions();
      while (!toldAll(pass)) await delay(this.#clock, pauseMs);
    }
    this.#isTelling = false;
  }
}

/** Tells one slice. Returns whether it was the last one. */
function toldAll(pass: Positions): boolean {
  let news = 0;
  for (let looks = 0; looks < maxLooks && news < maxNews; looks++) {
    const next = pass.next();
    if (next.done === true) return true;
    const [waiting, position] = next.value;
    if (waiting.onPosition(position)) news++;
  }
  return false;
}
