import { BackgroundJobs, type BackgroundLimits } from '../../src/primary/background/background-jobs.js';
import { BackgroundRunner } from '../../src/primary/background/background-runner.js';
import { MemoryJobs } from '../../src/primary/store/memory/memory-jobs.js';
import type { BackgroundJobView, JobForm } from '../../src/shared/background.js';
import { storeUnavailable } from '../../src/shared/errors.js';
import type { JobEnd, JobEvent, JobRequest } from '../../src/shared/job.js';
import { JobHarness, type JobOptions } from './job-harness.js';
import { jobRequest } from './job-records.js';

export const plainForm: JobForm = { route: '/ask', model: null, tool: null, isStructured: false };

/** A store in memory that can be away, and knows what it was asked for. */
class WatchedJobs extends MemoryJobs {
  isAway = false;
  /** Ids, in the order of the attempts. */
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

/** Background jobs over a real job runner whose CLI processes follow a script. The waiting room is checked every second, as in the service. */
export class BackgroundHarness {
  readonly store = new WatchedJobs();
  readonly inner: JobHarness;
  readonly runner: BackgroundRunner;
  readonly jobs: BackgroundJobs;
  /** Ids and outcomes, in the order of the ends. */
  readonly ends: { readonly id: string; readonly end: JobEnd }[] = [];
  readonly refused: string[] = [];
  #requests = 0;

  constructor(options: JobOptions = {}, limits: Partial<BackgroundLimits> = {}) {
    this.inner = new JobHarness(options);
    const { runner, room, clock } = this.inner;
    const observer = {
      ended: ({ accepted: { id } }: { accepted: { id: string } }, end: JobEnd) => void this.ends.push({ id, end }),
      refused: (client: string) => void this.refused.push(client),
    };
    const { store } = this;
    this.runner = new BackgroundRunner({
      runner,
      room,
      store,
      observer,
      enter: null,
      clock,
    });
    const bounds = { maxJobs: 100, jobTtlMs: 60_000, ...limits };
    this.jobs = new BackgroundJobs(store, this.runner, bounds, clock);
    clock.every(1000, () => room.check());
  }

  get clock() {
    return this.inner.clock;
  }

  /** Resolves with its id. */
  async accept(differences: Partial<JobRequest> = {}): Promise<string> {
    const requestId = `background ${++this.#requests}`;
    const request = jobRequest({ requestId, isStreamed: true, ...differences });
    return (await this.jobs.accept(request, plainForm)).id;
  }

  view(id: string, client = 'a'): Promise<BackgroundJobView> {
    return this.jobs.view(id, client);
  }

  async statusOf(id: string, client = 'a'): Promise<string> {
    return (await this.view(id, client)).status;
  }

  /** Those of its events that have a meaning for a reader, until it has ended. */
  events(id: string, client = 'a', signal = new AbortController().signal): AsyncGenerator<JobEvent> {
    return this.jobs.events(id, client, signal);
  }

  get outcomes(): string[] {
    return this.ends.map(({ end }) => end.outcome);
  }
}
