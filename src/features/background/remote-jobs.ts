import { refusedEnd } from '../../primary/jobs/job-end.js';
import { jobCancelled } from '../../primary/jobs/local-jobs.js';
import type { CallerJob, CallerOrder, JobView } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, delay } from '../../shared/clock.js';
import { storeUnavailable } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import type { JobRecord } from '../stores/contract/jobs.js';
import type { SharedJobs } from '../stores/contract/shared-jobs.js';
import { StoredJobs, viewOf } from './stored-jobs.js';

/** Interval at which the end of a cancelled job is checked. */
const checkMs = 200;
/** Limit for a live host to end a cancelled job. */
const cancelLimitMs = 12_000;
/** Interval at which the message to the host of the job is repeated. */
const repeatMs = 1000;

/** Listener for jobs that are cancelled while they wait. */
interface WaitingJobListener {
  dismiss(request: JobRequest, reason: Error): void;
  recordEnded(record: JobRecord): void;
}

/** Background jobs that this host does not run, if several hosts share a store: they may wait or run. */
export class RemoteJobs extends StoredJobs {
  readonly #store: SharedJobs;
  readonly #listener: WaitingJobListener;
  readonly #clock: Clock;

  constructor(store: SharedJobs, ttlMs: number, listener: WaitingJobListener, clock: Clock) {
    super(store, ttlMs, clock);
    this.#store = store;
    this.#listener = listener;
    this.#clock = clock;
  }

  override position(id: string): Promise<number> {
    return this.#store.position(id);
  }

  override async cancelJob(id: string, client: ClientText, by: string | null = null): Promise<JobView> {
    const reason = jobCancelled(by);
    const ended = { status: 'cancelled', endedAt: this.#clock.now(), end: refusedEnd(reason) } as const;
    const lastMs = this.#clock.monotonicMs() + cancelLimitMs;
    let hasWaited = false;
    for (let sentMs = -Infinity; ; ) {
      if (this.#clock.monotonicMs() - sentMs >= repeatMs) {
        const cancelling = await this.#store.cancelJob(id, ended, by);
        if (cancelling.was === 'queued') {
          hasWaited = true;
          this.#listener.dismiss(cancelling.request, reason);
        }
        sentMs = this.#clock.monotonicMs();
      }
      const record = await this.findJob(id, client);
      if (record.end !== null) {
        if (hasWaited) this.#listener.recordEnded(record);
        return viewOf(record);
      }
      if (this.#clock.monotonicMs() >= lastMs) throw storeUnavailable();
      await delay(this.#clock, checkMs);
    }
  }

  override cancelCaller(order: CallerOrder): Promise<CallerJob | null> {
    return this.#store.cancelCaller(order);
  }
}
