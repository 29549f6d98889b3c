import type { Clock } from '../../shared/clock.js';
import { type QuotaWindow, type QuotaWindowName, quotaWindowNames } from '../../shared/health.js';

/** A program that tells nonsense must not be believed for longer than the longest window lasts. */
const maxAgeMs = 8 * 24 * 60 * 60_000;

interface Heard {
  readonly window: QuotaWindow;
  readonly heardMs: number;
}

/** Owns what the model CLI has last told of each window of its account, until the window's reset. */
export class QuotaWindows {
  readonly #clock: Clock;
  readonly #heard = new Map<QuotaWindowName, Heard>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns those that are about to close, and were not before. */
  report(windows: readonly QuotaWindow[]): readonly QuotaWindow[] {
    const before = new Map(this.current.map((window) => [window.name, window]));
    for (const { name, status, utilization, resetsAt } of windows) {
      const window = { name, status, utilization: sane(utilization), resetsAt: this.#sane(resetsAt) };
      this.#heard.set(name, { window, heardMs: this.#clock.monotonicMs() });
    }
    return this.current.filter(({ name, status }) => status === 'warning' && before.get(name)?.status !== 'warning');
  }

  get current(): readonly QuotaWindow[] {
    const now = this.#clock.now();
    const oldestMs = this.#clock.monotonicMs() - maxAgeMs;
    return [...this.#heard.values()].flatMap(({ window, heardMs }) =>
      heardMs >= oldestMs && (window.resetsAt ?? now + 1) > now ? [window] : [],
    );
  }

  /** By window; 0 where nothing is known. */
  get utilization(): Readonly<Record<string, number>> {
    const known = new Map(this.current.map(({ name, utilization }) => [name, utilization ?? 0]));
    return Object.fromEntries(quotaWindowNames.map((name) => [name, known.get(name) ?? 0]));
  }

  #sane(resetsAt: number | null): number | null {
    const isSane = resetsAt !== null && Math.abs(resetsAt - this.#clock.now()) <= maxAgeMs;
    return isSane ? resetsAt : null;
  }
}

/** It may be a little above 1. */
function sane(utilization: number | null): number | null {
  return utilization !== null && utilization >= 0 && utilization <= 100 ? utilization : null;
}
