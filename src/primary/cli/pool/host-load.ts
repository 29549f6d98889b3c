import type { Clock } from '../../../shared/clock.js';
import { idleTicks } from '../../../shared/process/proc.js';

/** Idle time is counted in ticks of 10 ms, so a shorter time shows too little; an older sample is out of date. */
const sampleAgeMs = { min: 50, max: 500 };
const tickMs = 10;
/** A model CLI takes up to 185 MB (measured on claude): with less free memory, none is started in advance. */
const minFreeBytes = 512 * 1024 * 1024;

/** Owns what is known of how busy the host is. */
export class HostLoad {
  readonly #clock: Clock;
  readonly #freeMemory: () => number;
  #sample: { readonly atMs: number; readonly ticks: number } | null = null;

  /** `freeMemory`: bytes that can be had without swapping. */
  constructor(clock: Clock, freeMemory: () => number) {
    this.#clock = clock;
    this.#freeMemory = freeMemory;
  }

  get hasMemory(): boolean {
    return this.#freeMemory() > minFreeBytes;
  }

  /** How many processors did nothing since the call before; null where that is not known. */
  async idleProcessors(): Promise<number | null> {
    const before = this.#sample;
    const atMs = this.#clock.monotonicMs();
    const ageMs = atMs - (before?.atMs ?? Number.NEGATIVE_INFINITY);
    if (ageMs < sampleAgeMs.min) return null;
    const ticks = await idleTicks();
    this.#sample = ticks === null ? null : { atMs, ticks };
    return ticks === null || before === null || ageMs > sampleAgeMs.max
      ? null
      : ((ticks - before.ticks) * tickMs) / ageMs;
  }
}
