import { useEffect, useState } from 'preact/hooks';
import type { PageClock } from './page-clock.mjs';

/** Owns one value, and tells those who listen when another takes its place. */
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

  /** The function that it returns ends it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** The value as it is now; the component is drawn again when it changes. */
export function useValue<T>(observable: Observable<T>): T {
  const [, setDrawn] = useState({});
  useEffect(() => observable.subscribe(() => setDrawn({})), [observable]);
  return observable.value;
}

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
