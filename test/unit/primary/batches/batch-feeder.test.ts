import { BatchFeeder } from '../../../../src/primary/batches/batch-feeder.js';
import type { StoredBatch } from '../../../../src/primary/store/contract/files.js';
import { cancelled, storeUnavailable } from '../../../../src/shared/errors.js';
import { settled } from '../../../support/basics/settled.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';
import { BatchHarness } from '../../../support/stores/batch-harness.js';

const seven = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'];
const answers = (lines: readonly string[]) => lines.map((line) => `answer ${line}`).toSorted();

/** Runs a batch to its end, and ends all of its jobs as they come. */
async function runToEnd(harness: BatchHarness, feeder: BatchFeeder, onRound: (round: number) => void = () => {}) {
  let isOver = false;
  const run = feeder.run().finally(() => {
    isOver = true;
  });
  for (let round = 0; !isOver && round < 200; round++) {
    await harness.clock.advance(500);
    onRound(round);
    harness.end();
    feeder.wake();
    await settled();
  }
  await run;
}

async function stored(harness: BatchHarness): Promise<StoredBatch> {
  const batch = await harness.store.findBatch('batch', 'key ada');
  if (batch === null) throw new Error('the batch is missing');
  return batch;
}

function lost() {
  return jobFailed('cli_error', { failure: { code: 'cli_error', reason: 'host_lost', message: 'lost' } });
}

describe('A batch', () => {
  it('has at most as many open jobs as it may, and one result for each line', async () => {
    const harness = new BatchHarness();
    const feeder = new BatchFeeder(
      await harness.add(['one', '', 'bad', ...seven.slice(1)], { total: 8 }),
      harness.parts,
    );
    await runToEnd(harness, feeder);
    expect(harness.mostOpen).toBe(3);
    const { out, err } = await harness.results();
    expect([out.toSorted(), err]).toEqual([answers(seven), ['refused bad']]);
    expect((await stored(harness)).progress).toMatchObject({
      status: 'ended',
      open: [],
      counts: { succeeded: 7, errored: 1, canceled: 0, expired: 0 },
    });
    expect(await harness.store.find('out', 'key ada')).toMatchObject({ isWhole: true, lines: 7 });
    expect([harness.ended.size, harness.outcomes.length]).toEqual([0, 8]);
  });

  it('goes on after a death of the service at any moment, without a second result or a second job', async () => {
    for (let rounds = 0; rounds < 8; rounds++) {
      const harness = new BatchHarness();
      const first = new BatchFeeder(await harness.add(seven), harness.parts);
      const dying = first.run();
      for (let round = 0; round < rounds; round++) {
        await harness.clock.advance(500);
        if (round % 2 === 1) harness.end();
        first.wake();
      }
      first.stop();
      await dying;
      await runToEnd(harness, new BatchFeeder(await stored(harness), harness.parts));
      expect((await harness.results()).out.toSorted()).toEqual(answers(seven));
      expect(harness.submitted.toSorted()).toEqual(seven.toSorted());
    }
  });

  it('removes the jobs of stored results after a death of the service before their removal', async () => {
    const harness = new BatchHarness();
    const jobs = {
      isOpenHere: (id: string) => harness.isOpenHere(id),
      findEnd: (id: string) => harness.findEnd(id),
      cancel: (id: string) => harness.cancel(id),
      remove: async () => {
        dying.stop();
        throw storeUnavailable();
      },
    };
    const dying = new BatchFeeder(await harness.add(seven), { ...harness.parts, jobs });
    await runToEnd(harness, dying);
    expect(harness.ended.size).toBeGreaterThan(0);
    await runToEnd(harness, new BatchFeeder(await stored(harness), harness.parts));
    expect((await harness.results()).out.toSorted()).toEqual(answers(seven));
    expect(harness.ended.size).toBe(0);
  });

  it('sends no further lines when another host may run it', async () => {
    const harness = new BatchHarness();
    const feeder = new BatchFeeder(await harness.add(seven), harness.parts);
    const run = feeder.run();
    await harness.clock.advance(500);
    for (const id of harness.open.keys()) await harness.remove(id); // the other host has their results
    harness.open.clear();
    harness.isLeased = false;
    feeder.wake();
    await run;
    expect(harness.submitted).toHaveLength(3);
  });

  it('sends no further lines when the files of its client are full, and ends', async () => {
    const harness = new BatchHarness();
    const batch = await harness.add(seven);
    harness.maxBytes = (await harness.store.usageOf('key ada')).bytes + 1;
    await runToEnd(harness, new BatchFeeder(batch, harness.parts));
    const { out, err } = await harness.results();
    expect(out.toSorted()).toEqual(answers(seven.slice(0, 3))); // those that ran
    expect(err).toEqual(Array.from({ length: 4 }, () => 'refused no_room'));
    expect((await stored(harness)).progress).toMatchObject({ status: 'ended', counts: { succeeded: 3, errored: 4 } });
  });

  it('repeats a line whose host has died, three times at most', async () => {
    const harness = new BatchHarness();
    const feeder = new BatchFeeder(await harness.add(['one', 'two']), harness.parts);
    await runToEnd(harness, feeder, (round) => harness.end(round < 2 ? lost() : jobDone()));
    expect((await harness.results()).out.toSorted()).toEqual(answers(['one', 'two']));
    expect(harness.submitted.filter((text) => text === 'one')).toHaveLength(3);
    const other = new BatchHarness();
    await runToEnd(other, new BatchFeeder(await other.add(['one']), other.parts), () => other.end(lost()));
    expect([other.submitted.length, (await other.results()).err]).toEqual([3, ['failure one']]);
  });

  it('sends a line again that could not be sent, unless its job exists', async () => {
    const harness = new BatchHarness();
    const feeder = new BatchFeeder(await harness.add(['one']), harness.parts);
    harness.refusal = storeUnavailable();
    await runToEnd(harness, feeder);
    expect((await harness.results()).out).toEqual(['answer one']);
    const dying = new BatchHarness();
    const submitLine = dying.submitLine.bind(dying);
    dying.submitLine = async (order) => {
      await submitLine(order);
      throw cancelled('the worker died after the job was accepted');
    };
    await runToEnd(dying, new BatchFeeder(await dying.add(['one']), dying.parts));
    expect([dying.submitted, (await dying.results()).out]).toEqual([['one'], ['answer one']]);
  });

  it.each(['canceled', 'expired'] as const)('gives the remaining lines a result: %s', async (cause) => {
    const harness = new BatchHarness();
    const now = harness.clock.now();
    const feeder = new BatchFeeder(
      await harness.add(seven, cause === 'expired' ? { expiresAt: now + 700 } : {}),
      harness.parts,
    );
    const run = feeder.run();
    await settled();
    expect(harness.open.size).toBe(3);
    if (cause === 'canceled') feeder.cancel(now);
    await harness.clock.advance(5000);
    await run;
    const { out, err } = await harness.results();
    expect([out, err.toSorted()]).toEqual([[], seven.map((line) => `${cause} ${line}`).toSorted()]);
    expect(await harness.store.find('out', 'key ada')).toBeNull();
    expect([harness.submitted.length, harness.open.size]).toEqual([3, 0]);
  });

  it('waits for a worker, and fails if its file was removed', async () => {
    const harness = new BatchHarness();
    harness.hasWorker = false;
    const feeder = new BatchFeeder(await harness.add(['one', 'two'], { total: 3 }), harness.parts);
    const run = feeder.run();
    await harness.clock.advance(2000);
    expect(harness.submitted).toEqual([]);
    harness.hasWorker = true;
    await harness.clock.advance(500);
    harness.end();
    feeder.wake();
    await harness.clock.advance(500);
    await run;
    expect((await stored(harness)).progress).toMatchObject({ status: 'failed', counts: { succeeded: 2 } });
  });

  it('ends without a result if it was removed', async () => {
    const harness = new BatchHarness();
    const feeder = new BatchFeeder(await harness.add(['one']), harness.parts);
    const run = feeder.run();
    await settled();
    await harness.store.removeBatch('batch');
    harness.end();
    feeder.wake();
    await run;
    expect(await harness.results()).toEqual({ out: [], err: [] });
  });
});
