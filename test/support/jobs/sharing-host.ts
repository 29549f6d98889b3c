import { oneHostGate } from '../../../src/primary/conversations/turn-gate.js';
import { JobPuller } from '../../../src/primary/hosts/job-puller.js';
import { RemoteJobs } from '../../../src/primary/hosts/remote-jobs.js';
import { BackgroundJobs } from '../../../src/primary/jobs/background-jobs.js';
import { ClientJobs } from '../../../src/primary/jobs/client-jobs.js';
import type { SharedMemoryJobs } from '../stores/shared-jobs.js';
import { hangs, JobHarness } from './job-harness.js';

/** Host that shares background jobs with others, built as in the service. Jobs end only when the test ends them. */
export class SharingHost {
  readonly inner = new JobHarness({ script: hangs });
  readonly jobs: BackgroundJobs;
  readonly clientJobs: ClientJobs;
  readonly puller: JobPuller;

  constructor(store: SharedMemoryJobs) {
    const { runner, room, clock } = this.inner;
    const observer = { ended: () => {}, endedByAdmin: () => {} };
    const stored = new RemoteJobs(store, 60_000, (request, reason) => void runner.dismiss(request, reason), clock);
    const resources = { runner, room, turnGate: oneHostGate, store, stored, observer, clock };
    this.jobs = new BackgroundJobs(resources, { maxJobs: 100 });
    this.clientJobs = new ClientJobs(this.jobs, resources);
    this.puller = new JobPuller(store, this.jobs, clock);
    store.listen({
      added: () => this.puller.changed(),
      cancelled: (id, by) => this.jobs.cancelHere(id, by),
      cancelCaller: (order) => this.clientJobs.cancelCaller(order),
    });
  }

  /** Outcomes that this host has counted. */
  get outcomes(): string[] {
    return this.inner.outcomes.map(([, outcome]) => outcome);
  }
}
