import { useEffect, useState } from 'preact/hooks';

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
