import type { Observable } from '../base/observable.mjs';
import type { PageClock } from '../base/page-clock.mjs';

/** Often enough to look like a stream, seldom enough to leave time for everything else. */
const drawMs = 50;

/** Owns the text that has come but is not shown yet: the page is drawn at most twenty times a second. */
export class DeltaBuffer {
  readonly #shown: Observable<string>;
  readonly #clock: PageClock;
  #waiting = '';
  #stopTimer: (() => void) | null = null;

  constructor(shown: Observable<string>, clock: PageClock) {
    this.#shown = shown;
    this.#clock = clock;
  }

  add(text: string): void {
    this.#waiting += text;
    this.#stopTimer ??= this.#clock.after(drawMs, () => this.#flush());
  }

  /** Shows this text instead of all that has come. */
  settle(text: string): void {
    this.#waiting = '';
    this.#shown.set(text);
  }

  #flush(): void {
    this.#stopTimer = null;
    this.#shown.set(this.#shown.value + this.#waiting);
    this.#waiting = '';
  }

  /** Shows what is left. */
  close(): void {
    this.#stopTimer?.();
    this.#flush();
  }
}
