import type { Clock } from '../../shared/clock.js';

/** So many wrong keys in one window are answered as such. */
const maxWrong = 10;
const windowMs = 60_000;
/** The first block. Each further one within an hour is twice as long, up to the longest. */
const firstBlockMs = 30_000;
const longestBlockMs = 900_000;
const memoryMs = 3_600_000;
/** Those that were seen first are forgotten first. */
const maxCallers = 10_000;

interface Caller {
  wrong: number;
  windowEndsMs: number;
  blockedUntilMs: number;
  blocks: number;
}

/**
 * Owns the count of wrong keys, by who has sent them, for all workers together. It blocks nobody with a right key: callers
 * share an address, and a right key is none that was guessed.
 */
export class KeyAttempts {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #onBlock: (caller: string, seconds: number) => void;
  readonly #callers = new Map<string, Caller>();

  constructor(clock: Pick<Clock, 'monotonicMs'>, onBlock: (caller: string, seconds: number) => void) {
    this.#clock = clock;
    this.#onBlock = onBlock;
  }

  /** Counts one wrong key. Returns the seconds for which this caller's wrong keys are refused unseen; 0: it is not blocked. */
  failed(name: string): number {
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
    this.#callers.delete(name);
    this.#callers.set(name, fresh);
    if (this.#callers.size > maxCallers) this.#forgetFirst();
    return fresh;
  }

  #forgetFirst(): void {
    for (const name of this.#callers.keys()) {
      this.#callers.delete(name);
      return;
    }
  }
}
