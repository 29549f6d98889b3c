import type { Clock } from '../../shared/clock.js';
import { type JobEnd, type JobEvent, unknownJobUsage } from '../../shared/job.js';
import type { JobFigures, JobProgress } from '../http/exchange.js';

type JobState =
  | { readonly name: 'asked' | 'waiting' }
  | { readonly name: 'running'; readonly sinceMs: number; readonly queueMs: number }
  | { readonly name: 'ended'; readonly end: JobEnd; readonly hadSlot: boolean };

/**
 * Progress of one job for the request log. If the response closes before the job has ended, its outcome is `cancelled`.
 */
export class JobReport implements JobProgress {
  readonly #clock: Clock;
  readonly #arrivedMs: number;
  #state: JobState = { name: 'asked' };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#arrivedMs = clock.monotonicMs();
  }

  /** Whether the job was admitted, which its first event reports. */
  get wasAdmitted(): boolean {
    return this.#state.name !== 'asked';
  }

  /** Whether the job has received a slot. */
  get hasStarted(): boolean {
    const state = this.#state;
    return state.name === 'running' || (state.name === 'ended' && state.hadSlot);
  }

  /**
   * Passes the events on, and ends the call as soon as the job has ended: a client that disconnects later has not
   * cancelled the job.
   */
  async *following(events: AsyncGenerator<JobEvent>): AsyncGenerator<JobEvent> {
    try {
      for (let step = await events.next(); step.done !== true; step = await events.next()) {
        this.follow(step.value);
        if (this.#state.name === 'ended') events.next().catch(() => {});
        yield step.value;
      }
    } finally {
      if (this.#state.name !== 'ended') await events.return(undefined);
    }
  }

  follow(event: JobEvent): void {
    if (event.type === 'job-admitted' || event.type === 'job-queued') this.#state = { name: 'waiting' };
    if (event.type === 'job-end') this.#state = { name: 'ended', end: event, hadSlot: this.hasStarted };
    if (event.type === 'job-start') {
      this.#state = { name: 'running', sinceMs: this.#clock.monotonicMs(), queueMs: event.queueMs };
    }
  }

  figures(): JobFigures {
    if (this.#state.name === 'ended') return this.#state.end;
    const now = this.#clock.monotonicMs();
    const { sinceMs, queueMs } =
      this.#state.name === 'running' ? this.#state : { sinceMs: now, queueMs: Math.round(now - this.#arrivedMs) };
    return { outcome: 'cancelled', queueMs, executionMs: Math.round(now - sinceMs), ...unknownJobUsage };
  }
}
