import { Registry } from 'prom-client';
import type { BackgroundJob } from '../../../../src/features/background/background-jobs.js';
import { observeBackground } from '../../../../src/features/background/observer.js';
import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import { JobEntry, type JobEntryParts } from '../../../../src/primary/jobs/job-entry.js';
import { ClientMetrics } from '../../../../src/primary/observe/job-metrics.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

it.each([
  ['a refused request', 'validation_error', 1],
  ['a cancelled job', 'cancelled', 0],
] as const)(
  'The observer of background jobs logs the end of each job, and counts only refused requests as refused: %s',
  (_, code, refused) => {
    const log = new LogBook();
    const clock = new FakeClock();
    const features = new FeatureHooks();
    const clients = new ClientMetrics(new Registry(), () => new Map());
    const job = {
      request: jobRequest(),
      background: { accepted: { id: 'j1', form: {} } },
      waitedMs: 5,
    } as BackgroundJob;
    const outcome = code === 'cancelled' ? code : 'internal_error';
    const told: unknown[] = [];
    const jobHooks = { backgroundEnded: (ended: object) => told.push(ended) };
    const jobEntry = new JobEntry({ clientMetrics: clients, features, clock } as unknown as JobEntryParts);
    observeBackground({ host: { log }, jobEntry, jobHooks }).ended(
      job,
      jobFailed(outcome, { failure: { code, message: '' } }),
    );
    expect(log.entries).toMatchObject([{ event: 'background_job_ended', fields: { job_id: 'j1', queue_ms: 5 } }]);
    expect(jobEntry.recentlyRefused).toBe(refused);
    expect(told).toMatchObject([{ id: 'j1', end: { outcome, queueMs: 5 } }]);
  },
);
