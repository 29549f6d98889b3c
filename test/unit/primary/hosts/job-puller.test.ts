import { BackgroundJob } from '../../../../src/primary/background/background-job.js';
import { JobPuller } from '../../../../src/primary/hosts/job-puller.js';
import { FakeClock } from '../../../support/fake-clock.js';
import { settled } from '../../../support/settled.js';
import { acceptedJob, SharedMemoryJobs } from '../../../support/shared-jobs.js';

/** A host with so many slots, whose jobs never end. */
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
    get hasRoom() {
      return started.length < slots;
    },
    get hasPatient() {
      return patient.length > 0;
    },
    start({ accepted: { id } }: BackgroundJob, mustHaveSlot: boolean) {
      if (runner.unfit.has(id) || (mustHaveSlot && !runner.hasRoom)) return false;
      (mustHaveSlot ? started : patient).push(id);
      return true;
    },
  };
  const adopt = (accepted: ReturnType<typeof acceptedJob>) => new BackgroundJob(accepted, clock);
  const puller = new JobPuller(store, runner, adopt, (job) => givenUp.push(job.accepted.id), clock);
  return { clock, store, runner, puller, started, patient, givenUp };
}

describe('A host that takes background jobs from the queue of all hosts', () => {
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

  it('gives back what can not start here, and goes on with the others', async () => {
    const { puller, started, store, runner, givenUp } = await host(2, 'one', 'two', 'three');
    runner.unfit.add('one');
    puller.changed();
    await settled();
    expect([started, store.back, givenUp]).toEqual([['two', 'three'], ['one'], ['one']]);
  });

  it('takes nothing where it is known that nothing waits, or once it is stopped', async () => {
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

  it('has the oldest one line up as a caller does, once it has waited for a minute, one at a time', async () => {
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

  it('keeps what may have been started, and tries it again', async () => {
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
