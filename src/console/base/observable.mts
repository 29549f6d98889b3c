import { useEffect, useState } from 'preact/hooks';
import type { PageClock } from './page-clock.mjs';

/** Owns one value, and calls its listeners when the value changes. */
export class Observable<T> {
  readonly #listeners = new Set<() => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  /** Returns the function that ends the subscription. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** The current value. The component is drawn again when it changes. */
export function useValue<T>(observable: Observable<T>): T {
  const [, setDrawn] = useState({});
  useEffect(() => observable.subscribe(() => setDrawn({})), [observable]);
  return observable.value;
}

/** Short enough for a smooth stream, long enough to leave time for other work. */
const drawMs = 50;

/** Owns text that is not shown yet, so that the page is drawn at most twenty times a second. */
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

  /** Replaces everything that was added. */
  settle(text: string): void {
    this.#waiting = '';
    this.#shown.set(text);
  }

  #flush(): void {
    this.#stopTimer = null;
    this.#shown.set(this.#shown.value + this.#waiting);
    this.#waiting = '';
  }

  /** Shows the rest at once. */
  close(): void {
    this.#stopTimer?.();
    this.#flush();
  }
}
