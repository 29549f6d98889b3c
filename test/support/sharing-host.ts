import { BackgroundJobs } from '../../src/primary/background/background-jobs.js';
import { BackgroundRunner } from '../../src/primary/background/background-runner.js';
import { JobPuller } from '../../src/primary/hosts/job-puller.js';
import { RemoteJobs } from '../../src/primary/hosts/remote-jobs.js';
import { hangs, JobHarness } from './job-harness.js';
import type { SharedMemoryJobs } from './shared-jobs.js';

/** One host of several that share their background jobs, put together as in the service. Its jobs never end by themselves. */
export class SharingHost {
  readonly inner = new JobHarness({ script: hangs });
  readonly jobs: BackgroundJobs;
  readonly puller: JobPuller;

  constructor(store: SharedMemoryJobs) {
    const { runner: jobRunner, room, clock } = this.inner;
    const observer = { ended: () => {}, refused: () => {} };
    const shared = { room, store, observer, enter: null, clock };
    const runner = new BackgroundRunner({ ...shared, runner: jobRunner });
    const elsewhere = new RemoteJobs(store, (request, reason) => void jobRunner.dismiss(request, reason), clock);
    const limits = { maxJobs: 100, jobTtlMs: 60_000 };
    this.jobs = new BackgroundJobs(store, runner, limits, clock, elsewhere);
    const giveUp: BackgroundJobs['giveUp'] = (job) => this.jobs.giveUp(job);
    this.puller = new JobPuller(store, runner, (accepted) => this.jobs.adopt(accepted), giveUp, clock);
    runner.onPutBack((job) => this.puller.putBack(job));
    store.listen({ added: () => this.puller.changed(), cancelled: (id) => this.jobs.cancelHere(id) });
  }

  /** How its jobs have ended, as it has counted them. */
  get outcomes(): string[] {
    return this.inner.outcomes.map(([, outcome]) => outcome);
  }
}
