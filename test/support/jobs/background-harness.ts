import { oneHostGate } from '../../../src/primary/conversations/turn-gate.js';
import { type BackgroundJob, BackgroundJobs, type EndedByAdmin } from '../../../src/primary/jobs/background-jobs.js';
import { ClientJobs } from '../../../src/primary/jobs/client-jobs.js';
import { StoredJobs } from '../../../src/primary/jobs/stored-jobs.js';
import { MemoryJobs } from '../../../src/primary/store/memory/memory-store.js';
import type { JobForm, JobStatus, JobView } from '../../../src/shared/background.js';
import { storeUnavailable } from '../../../src/shared/errors.js';
import type { JobEnd, JobEvent, JobRequest } from '../../../src/shared/job.js';
import { JobHarness, type JobOptions } from './job-harness.js';
import { jobRequest } from './job-records.js';

export const plainForm: JobForm = { route: '/ask', model: null, isStructured: false };

/** Store in memory that can be made unavailable, and records the calls. */
class WatchedJobs extends MemoryJobs {
  isAway = false;
  /** Ids of started jobs, in the order of the attempts. */
  readonly starts: string[] = [];

  override async accept(job: Parameters<MemoryJobs['accept']>[0]): Promise<void> {
    this.#check();
    await super.accept(job);
  }

  override async start(id: string, at: number): Promise<boolean> {
    this.starts.push(id);
    this.#check();
    return super.start(id, at);
  }

  override async end(...[id, ended, text]: Parameters<MemoryJobs['end']>): Promise<boolean> {
    this.#check();
    return super.end(id, ended, text);
  }

  #check(): void {
    if (this.isAway) throw storeUnavailable();
  }
}

/**
 * Background jobs over a real job runner with scripted CLI processes. The waiting room is checked every second, as in
 * the service.
 */
export class BackgroundHarness {
  readonly store = new WatchedJobs();
  readonly inner: JobHarness;
  readonly jobs: BackgroundJobs;
  readonly stored: StoredJobs;
  readonly clientJobs: ClientJobs;
  /** Ids and results, in the order of the ends. */
  readonly ends: { readonly id: string; readonly end: JobEnd }[] = [];
  readonly endedByAdmin: [by: string, job: EndedByAdmin][] = [];
  #requests = 0;

  constructor(options: JobOptions = {}, { maxJobs = 100, jobTtlMs = 60_000 } = {}) {
    this.inner = new JobHarness(options);
    const { runner, room, clock } = this.inner;
    const observer = {
      ended: ({ background }: BackgroundJob, end: JobEnd) => void this.ends.push({ id: background.accepted.id, end }),
      endedByAdmin: (by: string, job: EndedByAdmin) => void this.endedByAdmin.push([by, job]),
    };
    const { store } = this;
    this.stored = new StoredJobs(store, jobTtlMs, clock);
    const { stored } = this;
    const resources = { runner, room, turnGate: oneHostGate, store, stored, observer, clock };
    this.jobs = new BackgroundJobs(resources, { maxJobs });
    this.clientJobs = new ClientJobs(this.jobs, resources);
    clock.every(1000, () => room.check());
  }

  get clock() {
    return this.inner.clock;
  }

  /** Accepts a job; resolves with its id. */
  async accept(differences: Partial<JobRequest> = {}): Promise<string> {
    const requestId = `background ${++this.#requests}`;
    const request = jobRequest({ requestId, isStreamed: true, ...differences });
    return (await this.jobs.accept(request, plainForm)).id;
  }

  view(id: string, client = 'a'): Promise<JobView> {
    return this.clientJobs.view(id, client);
  }

  async statusOf(id: string, client = 'a'): Promise<string> {
    return (await this.view(id, client)).status;
  }

  delete(id: string, client = 'a'): Promise<JobStatus | null> {
    return this.clientJobs.delete({ id, client, isAdmin: false, keepsEnded: false });
  }

  /** Returns the events that concern a reader, until the job has ended. */
  events(id: string, client = 'a', signal = new AbortController().signal): AsyncGenerator<JobEvent> {
    return this.clientJobs.events(id, client, signal);
  }

  get outcomes(): string[] {
    return this.ends.map(({ end }) => end.outcome);
  }
}
