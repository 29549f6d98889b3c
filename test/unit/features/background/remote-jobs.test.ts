import { AnswerLog } from '../../../../src/features/background/event-log.js';
import { JobPuller } from '../../../../src/features/background/job-puller.js';
import { RemoteJobs } from '../../../../src/features/background/remote-jobs.js';
import type { JobRecord } from '../../../../src/features/stores/contract/jobs.js';
import { withResolvers } from '../../../../src/shared/async.js';
import type { JobEvent, JobRequest } from '../../../../src/shared/job.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';
import { all, hangs, jobHarness } from '../../../support/jobs/job-harness.js';
import { jobDone } from '../../../support/jobs/job-records.js';
import { acceptedJob, answerOf, endedAt, SharedMemoryJobs } from '../../../support/stores/shared-jobs.js';

async function withJob() {
  const clock = new FakeClock();
  const store = new SharedMemoryJobs();
  await store.accept(acceptedJob('one', clock.now()));
  const dismissed: string[] = [];
  const listener = {
    dismiss: ({ requestId }: JobRequest) => void dismissed.push(requestId),
    recordEnded: ({ id, end }: JobRecord) => void dismissed.push(`${id} has ended: ${end?.outcome}`),
  };
  const elsewhere = new RemoteJobs(store, 60_000, listener, clock);
  const heard: JobEvent[] = [];
  const follow = async () => {
    for await (const event of elsewhere.events('one', 'key a', new AbortController().signal)) heard.push(event);
  };
  return { clock, store, elsewhere, dismissed, heard, follow };
}

describe('A job of another host', () => {
  it('can be followed from its queue position to its end', async () => {
    const { clock, store, heard, follow } = await withJob();
    const ended = follow();
    await clock.advance(1000);
    await store.startJob('one', clock.now());
    await clock.advance(1000);
    await store.endJob('one', endedAt(clock.now()), answerOf('Hello'));
    await clock.advance(1000);
    await ended;
    expect(heard).toEqual([
      { type: 'job-queued', position: 1, reason: 'slot' },
      { type: 'job-start', queueMs: 1000 },
      { type: 'text-delta', text: 'Hello' },
      jobDone({ model: 'eliza' }),
    ]);
  });

  it('is cancelled while it waits, and counted', async () => {
    const { elsewhere, dismissed } = await withJob();
    expect(await elsewhere.cancelJob('one', 'key a')).toMatchObject({ status: 'cancelled', startedAt: null });
    expect(dismissed).toEqual(['request of one', 'one has ended: cancelled']);
  });

  it('is cancelled by its host, which receives the request again until it does so', async () => {
    const { clock, store, elsewhere, dismissed } = await withJob();
    await store.startJob('one', 1);
    const cancelled = elsewhere.cancelJob('one', 'key a');
    await clock.advance(1500);
    expect(store.calls).toEqual(['cancel one', 'cancel one']);
    const at = clock.now();
    await store.endJob('one', endedAt(at, 'cancelled'), new AnswerLog());
    await clock.advance(1000);
    expect(await cancelled).toMatchObject({ status: 'cancelled', endedAt: at });
    expect(dismissed).toEqual([]);
  });

  it('cannot be cancelled reliably if its host does not respond', async () => {
    const { clock, store, elsewhere } = await withJob();
    await store.startJob('one', 1);
    const refused = expect(elsewhere.cancelJob('one', 'key a')).rejects.toMatchObject({ code: 'store_unavailable' });
    await clock.advance(13_000);
    await refused;
  });

  it('no longer exists once it is removed, also for its readers', async () => {
    const { clock, store, follow } = await withJob();
    const ended = expect(follow()).rejects.toMatchObject({ code: 'not_found' });
    await settled();
    await store.removeJob('one');
    await clock.advance(1000);
    await ended;
  });
});

/** Creates a host that shares background jobs with others. Its jobs end only when the test ends them. */
function sharingHost(store: SharedMemoryJobs) {
  const harness = jobHarness({ script: hangs, sharedJobs: store });
  const puller = new JobPuller(store, harness.jobs, harness.clock);
  store.listen({
    added: () => puller.changed(),
    cancelled: (id, by) => harness.jobs.cancelHere(id, by),
    cancelCaller: (order) => harness.localJobs.cancelCaller(order),
  });
  return { ...harness, puller };
}

/**
 * Creates a job shared by two hosts. The first has no free slot, but has queued the job because it has waited for a
 * minute.
 */
async function linedUp() {
  const store = new SharedMemoryJobs();
  const [north, south] = [sharingHost(store), sharingHost(store)];
  const caller = north.start();
  await store.accept(acceptedJob('one', north.clock.now()));
  store.waiting = { count: 1, since: north.clock.now() };
  await north.clock.advance(60_000);
  north.puller.check();
  await settled();
  return {
    store,
    north,
    south,
    caller,
    outcomes: () => [north, south].flatMap((host) => host.outcomes().map(([, outcome]) => outcome)),
  };
}

describe('A job in the queue of another host', () => {
  it('can be cancelled from here, leaves the queue, and is counted once', async () => {
    const { store, north, south, outcomes } = await linedUp();
    expect(north.room.hasPromoted).toBe(true);
    expect(await south.clientJobs.cancelJob('one', 'key a')).toMatchObject({ status: 'cancelled', startedAt: null });
    await settled();
    expect([north.room.waitingInBackground, store.back]).toEqual([[], ['one']]);
    expect(outcomes()).toEqual(['cancelled']);
    expect(await all(north.clientJobs.events('one', 'key a', new AbortController().signal))).toMatchObject([
      { outcome: 'cancelled' },
    ]);
  });

  it('is counted once if two hosts receive a cancel request at the same time', async () => {
    const { north, south, outcomes } = await linedUp();
    const cancelled = await Promise.all([north, south].map((host) => host.clientJobs.cancelJob('one', 'key a')));
    expect(cancelled).toMatchObject([{ status: 'cancelled' }, { status: 'cancelled' }]);
    await settled();
    expect(north.room.waiting).toBe(0);
    expect(outcomes()).toEqual(['cancelled']);
  });

  it.each([
    ['before it was asked', false],
    ['after it has said so', true],
  ])('is counted once even if the store is asked to record its start: cancelled %s', async (_, isStarted) => {
    const { store, south, caller, outcomes } = await linedUp();
    const [asked, answered] = [withResolvers(), withResolvers()];
    store.startJob = async (id, at) => {
      if (!isStarted) await south.clientJobs.cancelJob(id, 'key a');
      const started = await SharedMemoryJobs.prototype.startJob.call(store, id, at);
      asked.resolve();
      await answered.promise;
      return started;
    };
    caller.leave();
    await asked.promise;
    const cancelled = isStarted ? south.clientJobs.cancelJob('one', 'key a') : null;
    await settled();
    answered.resolve();
    await settled();
    await south.clock.advance(1000);
    await cancelled;
    expect(await south.clientJobs.view('one', 'key a')).toMatchObject({ status: 'cancelled' });
    expect(outcomes()).toEqual(['cancelled', 'cancelled']); // the first outcome is that of the earlier job
  });
});

it('The room for further jobs is that of the queue of all hosts', () => {
  const store = new SharedMemoryJobs();
  const { jobs } = sharingHost(store);
  store.waiting = { count: 99, since: 0 };
  expect(() => jobs.checkRoom('key a', [1])).not.toThrow();
  expect(() => jobs.checkRoom('key a', [1, 1])).toThrow('too many background jobs wait');
});
