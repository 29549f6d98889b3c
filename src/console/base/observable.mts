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

/** Returns the current value, and redraws the component when it changes. */
export function useValue<T>(observable: Observable<T>): T {
  const [, setDrawn] = useState({});
  const drawn = observable.value;
  useEffect(() => {
    const draw = () => setDrawn({});
    if (!Object.is(observable.value, drawn)) draw(); // the value changed between the drawing and this effect
    return observable.subscribe(draw);
  }, [observable]);
  return drawn;
}

/** Interval between redraws: short enough for a smooth stream, long enough to leave time for other work. */
const drawMs = 50;

/** Buffers streamed text, so that the page is drawn at most twenty times a second. */
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

  /** Replaces all text, shown or buffered. */
  settle(text: string): void {
    this.#waiting = '';
    this.#shown.set(text);
  }

  #flush(): void {
    this.#stopTimer = null;
    this.#shown.set(this.#shown.value + this.#waiting);
    this.#waiting = '';
  }

  /** Shows the buffered text at once. */
  close(): void {
    this.#stopTimer?.();
    this.#flush();
  }
}
