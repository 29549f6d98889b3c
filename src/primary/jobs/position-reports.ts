import { type Clock, delay } from '../../shared/clock.js';
import type { Ticket } from './ticket.js';

/** All who wait, each with its position. Is left alone for a while now and then, and goes on with what is there by then. */
export type Positions = Iterator<readonly [ticket: Ticket, position: number]>;

/** Time before a pass and between two slices of one, milliseconds. */
const pauseMs = 50;
/** No reader gets positions more often. */
const leastMs = 1000;
/** Each report is a message to a worker and a write to a client, and everything else waits for those of one slice. */
const maxReports = 32;
/** To ask one without news costs little, but not nothing. */
const maxAsked = 2000;

/**
 * Owns when the readers of those who wait get their positions: in passes over all of them, cut into slices. A long queue
 * takes longer than a short one, and costs no more. A change during a pass makes for another one.
 */
export class PositionReports {
  readonly #clock: Clock;
  readonly #positions: () => Positions;
  #hasNews = false;
  /** When the first reader may get its next position, of those that were passed over; else infinite. */
  #dueMs = Number.POSITIVE_INFINITY;
  #isReporting = false;

  constructor(clock: Clock, positions: () => Positions) {
    this.#clock = clock;
    this.#positions = positions;
  }

  changed(): void {
    this.#hasNews = true;
    if (!this.#isReporting) void this.#report();
  }

  async #report(): Promise<void> {
    this.#isReporting = true;
    while (this.#hasNews) {
      await delay(this.#clock, this.#pauseMs);
      this.#hasNews = false;
      this.#dueMs = Number.POSITIVE_INFINITY;
      const pass = this.#positions();
      while (!this.#reportSlice(pass)) await delay(this.#clock, pauseMs);
    }
    this.#isReporting = false;
  }

  get #pauseMs(): number {
    const untilDueMs = this.#dueMs - this.#clock.monotonicMs();
    return Number.isFinite(untilDueMs) ? Math.max(pauseMs, untilDueMs) : pauseMs;
  }

  /** Returns whether it was the last one. */
  #reportSlice(pass: Positions): boolean {
    const nowMs = this.#clock.monotonicMs();
    let reports = 0;
    for (let asked = 0; asked < maxAsked && reports < maxReports; asked++) {
      const next = pass.next();
      if (next.done === true) return true;
      const [ticket, position] = next.value;
      if (nowMs - ticket.positionMs < leastMs) this.#reportLater(ticket.positionMs + leastMs);
      else if (ticket.onPosition(position, ticket.reason)) {
        ticket.positionMs = nowMs;
        reports++;
      }
    }
    return false;
  }

  #reportLater(dueMs: number): void {
    this.#hasNews = true;
    this.#dueMs = Math.min(this.#dueMs, dueMs);
  }
}
