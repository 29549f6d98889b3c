import type { BackgroundJob } from '../../../../src/features/background/background-jobs.js';
import { JobPuller } from '../../../../src/features/background/job-puller.js';
import type { AcceptedJob } from '../../../../src/primary/jobs/background-part.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';
import { forever } from '../../../support/jobs/job-harness.js';
import { acceptedJob, SharedMemoryJobs } from '../../../support/stores/shared-jobs.js';

/** Creates a host with this many slots, whose jobs never end. */
async function host(slots: number, ...ids: readonly string[]) {
  const clock = new FakeClock();
  const store = new SharedMemoryJobs();
  for (const id of ids) await store.accept(acceptedJob(id, clock.now()));
  const started: string[] = [];
  const patient: string[] = [];
  const givenUp: string[] = [];
  const runner = {
    isStopped: false,
    unfit: new Set<string>(),
    /** Outcome of each admitted job. */
    outcome: forever as Promise<'ended' | 'returned'>,
    get hasRoom() {
      return started.length < slots;
    },
    get hasPatient() {
      return patient.length > 0;
    },
    adopt: (accepted: AcceptedJob) => ({ background: { accepted, log: {} } }) as BackgroundJob,
    lose: ({ background }: BackgroundJob) => void givenUp.push(background.accepted.id),
    startJob({ background: { accepted } }: BackgroundJob, mustHaveSlot: boolean) {
      if (runner.unfit.has(accepted.id) || (mustHaveSlot && !runner.hasRoom)) return null;
      (mustHaveSlot ? started : patient).push(accepted.id);
      return runner.outcome;
    },
  };
  const puller = new JobPuller(store, runner, clock);
  return { clock, store, runner, puller, started, patient, givenUp };
}

describe('A host that takes background jobs from the shared queue', () => {
  it('takes as many as it has slots, and the next one when a slot is free', async () => {
    const { puller, started, store } = await host(2, 'one', 'two', 'three');
    puller.changed();
    puller.changed();
    await settled();
    expect([started, store.queue.map(({ id }) => id)]).toEqual([['one', 'two'], ['three']]);
    started.shift();
    puller.changed();
    await settled();
    expect(started).toEqual(['two', 'three']);
  });

  it('returns jobs that cannot start here, and continues with the others', async () => {
    const { puller, started, store, runner, givenUp } = await host(2, 'one', 'two', 'three');
    runner.unfit.add('one');
    puller.changed();
    await settled();
    expect([started, store.back, givenUp]).toEqual([['two', 'three'], ['one'], ['one']]);
  });

  it('requeues a job that was admitted but could not start', async () => {
    const { puller, started, store, runner, givenUp } = await host(1, 'one');
    runner.outcome = Promise.resolve('returned');
    puller.changed();
    await settled();
    expect([started, store.back, givenUp]).toEqual([['one'], ['one'], ['one']]);
  });

  it('uses a slot that becomes free while it takes the oldest job', async () => {
    const { puller, started, patient, store, clock } = await host(1, 'one', 'two');
    started.push('running');
    store.waiting = { count: 2, since: clock.now() - 60_000 };
    const takeJob = store.takeJob.bind(store);
    const taking = withResolvers();
    store.takeJob = async (...which) => {
      await taking.promise;
      return takeJob(...which);
    };
    puller.check();
    started.pop();
    puller.changed();
    taking.resolve();
    await settled();
    expect([patient, started]).toEqual([['one'], ['two']]);
  });

  it('takes nothing if the queue is known to be empty, or once it is stopped', async () => {
    const { puller, started, store, runner } = await host(2, 'one');
    store.mayHaveNext = false;
    puller.changed();
    await settled();
    expect(started).toEqual([]);
    store.mayHaveNext = true;
    runner.isStopped = true;
    puller.changed();
    puller.check();
    await settled();
    expect([started, store.back]).toEqual([[], []]);
  });

  it('gives the oldest job the rank of a caller after a minute, one at a time', async () => {
    const { puller, patient, store, clock } = await host(0, 'one', 'two');
    store.waiting = { count: 2, since: clock.now() };
    await clock.advance(59_999);
    puller.check();
    await settled();
    expect(patient).toEqual([]);
    await clock.advance(1);
    puller.check();
    puller.check();
    await settled();
    puller.check();
    await settled();
    expect(patient).toEqual(['one']);
  });

  it('retains a job that may have been started, and retries it', async () => {
    const { puller, started, store, runner, givenUp } = await host(1, 'one');
    store.isSure = false;
    runner.unfit.add('one');
    puller.changed();
    await settled();
    expect([started, givenUp]).toEqual([[], []]);
    runner.unfit.clear();
    puller.check();
    expect(started).toEqual(['one']);
  });
});
