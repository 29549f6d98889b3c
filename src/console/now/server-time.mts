import type { StatusChange } from '../../shared/api/status.js';

const longestMs = 61_000;

/**
 * Owns what the times that the server tells give away of its clock: none of them is later than now there. The minute that
 * runs is among them, so that a browser whose clock is ahead by more than that shows too.
 */
export class ServerTime {
  #atLeastMs = Number.NEGATIVE_INFINITY;

  /** How much further the server's clock is than the browser's. 0 where they may well be the same. */
  aheadMs(told: StatusChange, nowMs: number): number {
    const latest = Math.max(...timesOf(told).map((time) => Date.parse(time) - nowMs));
    this.#atLeastMs = Math.max(this.#atLeastMs, latest);
    if (this.#atLeastMs === Number.NEGATIVE_INFINITY) return 0;
    return this.#atLeastMs > 0 || this.#atLeastMs < -longestMs ? this.#atLeastMs : 0;
  }
}

function timesOf({ slots, queue, checks, last_hour: minutes }: StatusChange): string[] {
  return [
    ...(slots?.running.map(({ started_at: at }) => at) ?? []),
    ...(queue?.clients.map(({ oldest_since: at }) => at) ?? []),
    ...(checks?.flatMap(({ checked_at: at }) => at ?? []) ?? []),
    ...(minutes?.map(({ at }) => at) ?? []),
  ];
}
