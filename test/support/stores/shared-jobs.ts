import { AnswerLog } from '../../../src/features/background/event-log.js';
import type { EndedJob } from '../../../src/features/stores/contract/jobs.js';
import type { Cancelling, SharedJobs, SharedJobsListener } from '../../../src/features/stores/contract/shared-jobs.js';
import { MemoryJobs } from '../../../src/features/stores/memory/memory-store.js';
import type { AcceptedJob } from '../../../src/primary/jobs/background-part.js';
import type { CallerJob, CallerOrder } from '../../../src/shared/background.js';
import type { JobRequest } from '../../../src/shared/job.js';
import { jobDone, jobRequest, plainForm } from '../jobs/job-records.js';

/** Background jobs that hosts share, in memory. The queue is a list; tests play the other hosts. */
export class SharedMemoryJobs extends MemoryJobs implements SharedJobs {
  override readonly shared = this;
  readonly queue: AcceptedJob[] = [];
  /** Ids of returned jobs. */
  readonly back: string[] = [];
  readonly calls: string[] = [];
  waiting: SharedJobs['waiting'] = { count: 0, since: null };
  mayHaveNext = true;
  /** Whether the store can report which jobs were started. */
  isSure = true;
  readonly #listeners: SharedJobsListener[] = [];
  readonly #requests = new Map<string, JobRequest>();
  readonly #cancelled = new Set<string>();

  override async accept(job: AcceptedJob): Promise<void> {
    await super.accept(job);
    this.#requests.set(job.id, job.request);
    this.queue.push(job);
  }

  listen(listener: SharedJobsListener): void {
    this.#listeners.push(listener);
  }

  async takeJob(which: 'next' | 'oldest'): Promise<AcceptedJob | null> {
    return (which === 'next' ? this.queue.shift() : this.queue.splice(this.#oldest(), 1)[0]) ?? null;
  }

  giveBack(id: string): boolean {
    if (this.isSure) this.back.push(id);
    return this.isSure;
  }

  async position(id: string): Promise<number> {
    return this.queue.findIndex((job) => job.id === id) + 1;
  }

  keepText(): void {}

  async cancelJob(...[id, ended, by]: Parameters<SharedJobs['cancelJob']>): Promise<Cancelling> {
    this.calls.push(`cancel ${id}`);
    const request = this.#requests.get(id);
    const record = request === undefined ? null : await this.findJob(id, request.client);
    const isGone = record === null || record.end !== null || (record.status === 'queued' && this.#cancelled.has(id));
    if (request === undefined || isGone) return { was: 'gone' };
    this.#cancelled.add(id);
    if (record.status === 'queued') await this.endJob(id, ended, new AnswerLog());
    for (const { cancelled } of this.#listeners) cancelled(id, by ?? null);
    return record.status === 'queued' ? { was: 'queued', request } : { was: 'running' };
  }

  async cancelCaller(order: CallerOrder): Promise<CallerJob | null> {
    return this.#listeners.map((listener) => listener.cancelCaller(order)).find((job) => job !== null) ?? null;
  }

  async renew(): Promise<void> {}

  #oldest(): number {
    const times = this.queue.map(({ createdAt }) => createdAt);
    return times.indexOf(Math.min(...times));
  }
}

export function acceptedJob(id: string, createdAt = 1): AcceptedJob {
  return { id, title: 'Hi', form: plainForm, request: jobRequest({ requestId: `request of ${id}` }), createdAt };
}

export function answerOf(text: string): AnswerLog {
  const log = new AnswerLog();
  log.addText(text);
  return log;
}

export function endedAt(at: number, status: EndedJob['status'] = 'succeeded'): EndedJob {
  return { status, endedAt: at, end: jobDone({ model: 'eliza' }) };
}
