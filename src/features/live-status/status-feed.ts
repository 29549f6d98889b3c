import type { SectionName, Sections } from '../../shared/api/status.js';
import { orAborted, withResolvers } from '../../shared/async.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import type { WrittenSections } from './shared.js';

const betweenUpdatesMs = 500;
/** The figures over time are sent less often, because they are large and every job changes the last row. */
const betweenHoursMs = 5000;
const slowSections: readonly SectionName[] = ['last_hour', 'last_day'];

interface Written {
  readonly text: string;
  /** Edition of the status in which the section last changed. */
  readonly edition: number;
}

/**
 * Owns the status as last sent to the subscribers. While there are subscribers, it composes all sections twice a second
 * and sends the changed ones. A slow subscriber gets only the latest state of each section.
 */
export class StatusFeed {
  readonly #sections: Sections;
  readonly #clock: Clock;
  readonly #written = new Map<SectionName, Written>();
  #edition = 0;
  #subscribers = 0;
  #updatedMs = Number.NEGATIVE_INFINITY;
  #hourUpdatedMs = Number.NEGATIVE_INFINITY;
  #next = withResolvers();
  #stopUpdates: StopTimer = () => {};

  constructor(sections: Sections, clock: Clock) {
    this.#sections = sections;
    this.#clock = clock;
  }

  /** Returns the body of GET /status. */
  get text(): string {
    const sections = Object.entries(this.#sections).map(([name, compose]) => [name, compose()]);
    return JSON.stringify(Object.fromEntries(sections));
  }

  /** Yields all sections at first, then changed sections. Ends when the signal aborts. */
  async *watch(signal: AbortSignal): AsyncGenerator<WrittenSections> {
    this.#enter();
    try {
      for (let sent = 0; ; ) {
        const edition = this.#edition;
        if (edition > sent) yield this.#changedSince(sent);
        else await orAborted(this.#next.promise, signal);
        sent = edition;
      }
    } finally {
      this.#leave();
    }
  }

  #enter(): void {
    if (this.#clock.monotonicMs() - this.#updatedMs >= betweenUpdatesMs) this.#update();
    if (this.#subscribers++ === 0) this.#stopUpdates = this.#clock.every(betweenUpdatesMs, () => this.#updateOrFail());
  }

  #leave(): void {
    if (--this.#subscribers === 0) this.#stopUpdates();
  }

  /** Updates the status. A defect in a section ends only the streams. */
  #updateOrFail(): void {
    try {
      this.#update();
    } catch (error) {
      const { promise, reject } = this.#takeNext();
      promise.catch(() => {}); // all subscribers may be busy
      reject(error);
    }
  }

  #update(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#updatedMs = nowMs;
    const isHourDue = nowMs - this.#hourUpdatedMs >= betweenHoursMs;
    if (isHourDue) this.#hourUpdatedMs = nowMs;
    const names = Object.keys(this.#sections) as SectionName[];
    const changed = names.filter((name) => (isHourDue || !slowSections.includes(name)) && this.#write(name));
    if (changed.length === 0) return;
    this.#edition++;
    this.#takeNext().resolve();
  }

  /** Composes a section. Returns whether it has changed. */
  #write(name: SectionName): boolean {
    const text = JSON.stringify(this.#sections[name]());
    if (this.#written.get(name)?.text === text) return false;
    this.#written.set(name, { text, edition: this.#edition + 1 });
    return true;
  }

  #takeNext() {
    const next = this.#next;
    this.#next = withResolvers();
    return next;
  }

  #changedSince(edition: number): WrittenSections {
    const changed = [...this.#written].filter(([, written]) => written.edition > edition);
    return Object.fromEntries(changed.map(([name, { text }]) => [name, text]));
  }
}
