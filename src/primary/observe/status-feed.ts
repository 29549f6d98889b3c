import type { SectionName, StatusBody } from '../../shared/api/status.js';
import { orAborted, withResolvers } from '../../shared/async/promises.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import type { WrittenSections } from '../../shared/ipc/protocol.js';
import type { Sections } from './status.js';

const betweenLooksMs = 500;
/** Its rows are many, and every job changes the last one. */
const betweenHoursMs = 5000;

interface Written {
  readonly text: string;
  /** In which edition of the status it last changed. */
  readonly edition: number;
}

/**
 * Owns the status as its subscribers were told it last. While there are any, it looks twice a second at what there is and
 * tells all of them which sections have changed. A subscriber that is slow misses what was overtaken meanwhile.
 */
export class StatusFeed {
  readonly #sections: Sections;
  readonly #clock: Clock;
  readonly #written = new Map<SectionName, Written>();
  #edition = 0;
  #subscribers = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #hourMs = Number.NEGATIVE_INFINITY;
  #next = withResolvers();
  #stopLooking: StopTimer = () => {};

  constructor(sections: Sections, clock: Clock) {
    this.#sections = sections;
    this.#clock = clock;
  }

  /** All sections at once, then those that have changed. Ends with the signal. */
  async *watch(signal: AbortSignal): AsyncGenerator<WrittenSections> {
    this.#enter();
    try {
      for (let told = 0; ; ) {
        const edition = this.#edition;
        if (edition > told) yield this.#changedSince(told);
        else await orAborted(this.#next.promise, signal);
        told = edition;
      }
    } finally {
      this.#leave();
    }
  }

  #enter(): void {
    if (this.#clock.monotonicMs() - this.#lookedMs >= betweenLooksMs) this.#look();
    if (this.#subscribers++ === 0) this.#stopLooking = this.#clock.every(betweenLooksMs, () => this.#lookOrFail());
  }

  #leave(): void {
    if (--this.#subscribers === 0) this.#stopLooking();
  }

  /** A defect of ours here ends the streams, and nothing else. */
  #lookOrFail(): void {
    try {
      this.#look();
    } catch (error) {
      const { promise, reject } = this.#tell();
      promise.catch(() => {}); // perhaps every subscriber is busy
      reject(error);
    }
  }

  #look(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#lookedMs = nowMs;
    const isHourDue = nowMs - this.#hourMs >= betweenHoursMs;
    if (isHourDue) this.#hourMs = nowMs;
    const names = Object.keys(this.#sections) as SectionName[];
    const changed = names.filter((name) => (name !== 'last_hour' || isHourDue) && this.#write(name));
    if (changed.length === 0) return;
    this.#edition++;
    this.#tell().resolve();
  }

  /** Returns whether it has changed. */
  #write(name: SectionName): boolean {
    const text = JSON.stringify(this.#sections[name]());
    if (this.#written.get(name)?.text === text) return false;
    this.#written.set(name, { text, edition: this.#edition + 1 });
    return true;
  }

  #tell() {
    const waited = this.#next;
    this.#next = withResolvers();
    return waited;
  }

  #changedSince(edition: number): WrittenSections {
    const changed = [...this.#written].filter(([, written]) => written.edition > edition);
    return Object.fromEntries(changed.map(([name, { text }]) => [name, text]));
  }
}

/** All sections, as the body of GET /status. */
export function statusOf(sections: Sections): StatusBody {
  const written = Object.entries(sections).map(([name, compose]) => [name, compose()]);
  return Object.fromEntries(written) as StatusBody;
}
