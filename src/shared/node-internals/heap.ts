import { getHeapStatistics } from 'node:v8';
import { type Clock, endOfLoopTurn } from '../clock.js';

/** A collection takes tens of milliseconds, and compiled code is cold after it, so it waits until nothing was done for this long. */
const idleMs = 3000;
/** Less is not worth a collection. */
const minGrowthBytes = 4 * 1024 ** 2;

/**
 * V8's answer to low memory: collections until nothing more is freed. It gives pages back, and shrinks the young
 * generation, which `gc()` leaves as it has grown. Does nothing on a Node that was built without an inspector.
 */
export async function collectAll(): Promise<void> {
  if (process.features.inspector !== true) return;
  const { Session } = require('node:inspector') as typeof import('node:inspector');
  const session = new Session();
  session.connect();
  await new Promise<void>((resolve) => session.post('HeapProfiler.collectGarbage', () => resolve()));
  await endOfLoopTurn(); // within its own callback, a session can't be ended
  session.disconnect();
}

/** Has the heap collected when a burst of work is over: by itself, V8 keeps what it has grown to for a long time. */
export class HeapKeeper {
  readonly #clock: Clock;
  readonly #collect: () => Promise<void>;
  #touchedMs = 0;
  #isWatching = false;
  /** 0: what was only needed to load the program goes at the first quiet. */
  #lastBytes = 0;

  constructor(clock: Clock, collect: () => Promise<void>) {
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
      void this.#collectNow();
    });
  }

  async #collectNow(): Promise<void> {
    await this.#collect();
    this.#lastBytes = heapBytes();
  }
}

function heapBytes(): number {
  return getHeapStatistics().total_physical_size;
}
