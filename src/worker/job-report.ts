import type { Clock } from '../shared/clock.js';
import type { JobEnd, JobEvent, Outcome } from '../shared/job.js';

type State =
  | { readonly name: 'asked' }
  | { readonly name: 'waiting' }
  | { readonly name: 'running'; readonly sinceMs: number; readonly queueMs: number }
  | { readonly name: 'ended'; readonly end: JobEnd };

export interface JobFigures {
  readonly outcome: Outcome;
  readonly queueMs: number;
  readonly executionMs: number;
}

/** What the request log says of a job. One that has not ended when its response closes is cancelled by that. */
export class JobReport {
  readonly #clock: Clock;
  readonly #arrivedMs: number;
  #state: State = { name: 'asked' };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#arrivedMs = clock.monotonicMs();
  }

  /** Whether the job was admitted, as its first event tells. */
  get wasAdmitted(): boolean {
    return this.#state.name !== 'asked';
  }

  follow(event: JobEvent): void {
    if (event.type === 'job-queued') this.#state = { name: 'waiting' };
    if (event.type === 'job-end') this.#state = { name: 'ended', end: event };
    if (event.type === 'job-start') {
      this.#state = { name: 'running', sinceMs: this.#clock.monotonicMs(), queueMs: event.queueMs };
    }
  }

  figures(): JobFigures {
    const now = this.#clock.monotonicMs();
    switch (this.#state.name) {
      case 'asked':
      case 'waiting':
        return { outcome: 'cancelled', queueMs: Math.round(now - this.#arrivedMs), executionMs: 0 };
      case 'running': {
        const { queueMs, sinceMs } = this.#state;
        return { outcome: 'cancelled', queueMs, executionMs: Math.round(now - sinceMs) };
      }
      case 'ended':
        return this.#state.end;
    }
  }
}
