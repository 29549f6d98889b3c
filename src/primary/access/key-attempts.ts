import { setNewest } from '../../shared/bounded-map.js';
import type { Clock } from '../../shared/clock.js';

/** Wrong keys per window that are answered as wrong; further ones block the caller. */
const maxWrong = 10;
const windowMs = 60_000;
/** Length of the first block. Each further block within an hour is twice as long, up to the longest. */
const firstBlockMs = 30_000;
const longestBlockMs = 900_000;
const memoryMs = 3_600_000;
/** Limit of remembered callers. The caller whose window is oldest is forgotten first. */
const maxCallers = 10_000;

interface Caller {
  wrong: number;
  windowEndsMs: number;
  blockedUntilMs: number;
  blocks: number;
}

/**
 * Counts wrong keys per caller, for all workers. A block never affects a valid key: callers share addresses, and a
 * valid key was not guessed.
 */
export class KeyAttempts {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #onBlock: (caller: string, seconds: number) => void;
  readonly #callers = new Map<string, Caller>();

  constructor(clock: Pick<Clock, 'monotonicMs'>, onBlock: (caller: string, seconds: number) => void) {
    this.#clock = clock;
    this.#onBlock = onBlock;
  }

  /**
   * Counts a wrong key. Returns the seconds for which further wrong keys of this caller are refused without a check; 0
   * if the caller is not blocked.
   */
  recordWrongKey(name: string): number {
    const now = this.#clock.monotonicMs();
    const caller = this.#callerOf(name, now);
    if (caller.blockedUntilMs <= now && ++caller.wrong > maxWrong) {
      const blockMs = Math.min(firstBlockMs * 2 ** caller.blocks++, longestBlockMs);
      caller.blockedUntilMs = now + blockMs;
      caller.windowEndsMs = caller.blockedUntilMs;
      this.#onBlock(name, blockMs / 1000);
    }
    return Math.max(0, Math.ceil((caller.blockedUntilMs - now) / 1000));
  }

  #callerOf(name: string, now: number): Caller {
    const known = this.#callers.get(name);
    if (known !== undefined && now < known.windowEndsMs) return known;
    const blocks = known !== undefined && now < known.blockedUntilMs + memoryMs ? known.blocks : 0;
    const fresh = {
      wrong: 0,
      windowEndsMs: now + windowMs,
      blockedUntilMs: blocks > 0 ? (known?.blockedUntilMs ?? 0) : 0,
      blocks,
    };
    setNewest(this.#callers, name, fresh, maxCallers);
    return fresh;
  }
}
