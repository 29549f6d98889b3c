import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../clock.js';

/** A collection takes tens of milliseconds, and compiled code is cold after it, so it waits until nothing was done for this long. */
const idleMs = 3000;
/** Less is not worth a collection. */
const minGrowthBytes = 4 * 1024 ** 2;

/** V8's full collection, twice: pages that the first one empties go back to the system at the second. Does nothing on a Node without it. */
export function fullCollection(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('globalThis.gc') as (() => void) | undefined;
  return () => {
    collect?.();
    collect?.();
  };
}

/** Has the heap collected when a burst of work is over: by itself, V8 keeps what it has grown to for a long time. */
export class HeapKeeper {
  readonly #clock: Clock;
  readonly #collect: () => void;
  #touchedMs = 0;
  #isWatching = false;
  /** 0: what was only needed to load the program goes at the first quiet. */
  #lastBytes = 0;

  constructor(clock: Clock, collect: () => void) {
    this.#clock = clock;
    this.#collect = collect;
  }

  /** Something was done. */
  touch(): void {
    this.#touchedMs = this.#clock.monotonicMs();
    if (!this.#isWatching) this.#watch(idleMs);
  }

  #watch(forMs: number): void {
    this.#isWatching = true;
    this.#clock.after(forMs, () => {
      const leftMs = this.#touchedMs + idleMs - this.#clock.monotonicMs();
      if (leftMs > 0) return this.#watch(leftMs);
      this.#isWatching = false;
      if (heapBytes() - this.#lastBytes < minGrowthBytes) return;
      this.#collect();
      this.#lastBytes = heapBytes();
    });
  }
}

function heapBytes(): number {
  return getHeapStatistics().total_physical_size;
}
