import { AnswerLog } from '../../../../src/features/background/event-log.js';
import { BatchFeeder } from '../../../../src/features/batches/batch-feeder.js';
import type { StoredBatch } from '../../../../src/features/stores/contract/files.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { cancelled, RelayError, storeUnavailable } from '../../../../src/shared/errors.js';
import { settled } from '../../../support/basics/settled.js';
import { backgroundView } from '../../../support/jobs/background-view.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';
import { BatchHarness } from '../../../support/stores/batch-harness.js';

const seven = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'];
const withId = (id: string) => JSON.stringify({ custom_id: id });
const mib = 1024 * 1024;
const long = (bytes: number) => (id: string) => JSON.stringify({ custom_id: id, body: 'x'.repeat(bytes) });
const answers = (lines: readonly string[]) => lines.map((line) => `answer ${line}`).toSorted();

/** Runs a batch to its end, and ends all of its jobs as they come. */
async function runToEnd(harness: BatchHarness, feeder: BatchFeeder, onRound: (round: number) => void = () => {}) {
  let isOver = false;
  const run = feeder.runBatch().finally(() => {
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
    expect(await harness.store.findFile('out', 'key ada')).toMatchObject({ isWhole: true, lines: 7 });
    expect([harness.ended.size, harness.outcomes.length]).toEqual([0, 8]);
  });

  it('goes on after a death of the service at any moment, without a second result or a second job', async () => {
    for (let rounds = 0; rounds < 8; rounds++) {
      const harness = new BatchHarness();
      const first = new BatchFeeder(await harness.add(seven), harness.parts);
      const dying = first.runBatch();
      for (let round = 0; round < rounds; round++) {
        await harness.clock.advance(500);
        if (round % 2 === 1) harness.end();
        first.wake();
      }
      first.stopFeeding();
      await dying;
      await runToEnd(harness, new BatchFeeder(await stored(harness), harness.parts));
      expect((await harness.results()).out.toSorted()).toEqual(answers(seven));
      expect(harness.submitted.toSorted()).toEqual(seven.toSorted());
    }
  });

  it('removes the jobs of stored results after a death of the service before their removal', async () => {
    const harness = new BatchHarness();
    const jobs = {
      findEndedLine: (id: string) => harness.findEndedLine(id),
      cancelJob: (id: string) => harness.cancelJob(id),
      removeJob: async () => {
        dying.stopFeeding();
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
    const run = feeder.runBatch();
    await harness.clock.advance(500);
    for (const id of harness.open.keys()) await harness.removeJob(id); // the other host has their results
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
      await harness.add(seven.map(withId), cause === 'expired' ? { expiresAt: now + 700 } : {}),
      harness.parts,
    );
    const run = feeder.runBatch();
    await settled();
    expect(harness.open.size).toBe(3);
    if (cause === 'canceled') feeder.cancel(now);
    await harness.clock.advance(5000);
    await run;
    const { out, err } = await harness.results();
    const ended = seven.map((line, index) => `${cause} ${index < 3 ? withId(line) : line}`);
    expect([out, err.toSorted()]).toEqual([[], ended.toSorted()]);
    expect(await harness.store.findFile('out', 'key ada')).toBeNull();
    expect([harness.submitted.length, harness.open.size]).toEqual([3, 0]);
  });

  it('waits for a worker, and fails if its file was removed', async () => {
    const harness = new BatchHarness();
    harness.hasWorker = false;
    const feeder = new BatchFeeder(await harness.add(['one', 'two'], { total: 3 }), harness.parts);
    const run = feeder.runBatch();
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
    const run = feeder.runBatch();
    await settled();
    await harness.store.removeBatch('batch');
    harness.end();
    feeder.wake();
    await run;
    expect(await harness.results()).toEqual({ out: [], err: [] });
  });

  it('moves no more than the ids of the lines when it is cancelled, and a bounded number of them at once', async () => {
    const harness = new BatchHarness();
    harness.hasWorker = false;
    const short = Array.from({ length: 250 }, (_, index) => withId(`short ${index}`));
    const lines = [...short, ...seven.map(long(mib))];
    const feeder = new BatchFeeder(await harness.add(lines, { cancelAt: harness.clock.now() }), harness.parts);
    harness.hasWorker = true;
    await feeder.runBatch();
    expect(harness.mostEnded).toBe(100);
    expect(harness.lastEnded).toBeLessThan(seven.length); // these lines together are longer than a step
    const { err } = await harness.results();
    expect(err).toHaveLength(257);
    expect(err.at(-1)).toBe('canceled seven');
  });

  it('has long lines read one at a time, also beside those of another batch', async () => {
    const harness = new BatchHarness();
    let [reading, mostReading] = [0, 0];
    const submitLine = harness.submitLine.bind(harness);
    harness.submitLine = async (order) => {
      mostReading = Math.max(mostReading, ++reading);
      await settled(2);
      reading--;
      return submitLine(order);
    };
    const batch = await harness.add(seven.map(long(3 * mib)));
    await runToEnd(harness, new BatchFeeder(batch, harness.parts));
    expect([harness.outcomes.length, mostReading]).toEqual([7, 1]);
  });

  it('stores results in bounded pieces when many long answers are there', async () => {
    const harness = new BatchHarness();
    const lines = Array.from({ length: 32 }, (_, index) => `line ${index}`);
    const feeder = new BatchFeeder(await harness.add(lines), { ...harness.parts, maxOpen: 32 });
    harness.writeLine = async () => ({ frame: ['x'.repeat(mib)], outcome: 'succeeded' });
    const advance = harness.store.advance.bind(harness.store);
    let most = 0;
    harness.store.advance = (id, progress, results) => {
      most = Math.max(most, ...results.map(({ data }) => data.length));
      return advance(id, progress, results);
    };
    await runToEnd(harness, feeder);
    expect(harness.outcomes).toHaveLength(32);
    expect(most).toBeLessThan(9 * mib);
  });

  it.each(['stopped', 'cancelled'] as const)(
    'does not wait for the pause after a failure when it is %s',
    async (how) => {
      const harness = new BatchHarness();
      harness.submitLine = async () => {
        throw new RelayError('concurrency_limited', 'full', { retryAfterSeconds: 5 });
      };
      const feeder = new BatchFeeder(await harness.add(['one', 'two']), harness.parts);
      const run = feeder.runBatch();
      await settled();
      expect(feeder.isSending((await stored(harness)).progress.open[0]?.jobId ?? '')).toBe(true);
      if (how === 'stopped') feeder.stopFeeding();
      else feeder.cancel(harness.clock.now());
      await run; // the clock stands still
      expect(harness.outcomes).toEqual(how === 'stopped' ? [] : ['canceled', 'canceled']);
    },
  );

  it('sends no line that has waited for its turn when it was stopped', async () => {
    const harness = new BatchHarness();
    const [turn, asked] = [withResolvers(), withResolvers()];
    const inTurn: typeof harness.parts.inTurn = async (call) => {
      asked.resolve();
      await turn.promise;
      return call();
    };
    const feeder = new BatchFeeder(await harness.add([long(2 * mib)('one')]), { ...harness.parts, inTurn });
    const run = feeder.runBatch();
    await asked.promise;
    feeder.stopFeeding();
    turn.resolve();
    await run;
    expect(harness.submitted).toEqual([]);
  });

  it('sends no other line while one could not be sent', async () => {
    const harness = new BatchHarness();
    let tries = 0;
    harness.submitLine = async () => {
      tries++;
      throw new RelayError('concurrency_limited', 'full', { retryAfterSeconds: 5 });
    };
    const feeder = new BatchFeeder(await harness.add(seven.map(long(3 * mib))), harness.parts);
    const run = feeder.runBatch();
    await settled(200);
    await harness.clock.advance(4000);
    await settled(200);
    expect(tries).toBe(1);
    feeder.stopFeeding();
    await run;
  });

  it('reports a defect of a call, and tries again', async () => {
    const harness = new BatchHarness();
    const defect = new TypeError('a defect');
    harness.refusal = defect;
    await runToEnd(harness, new BatchFeeder(await harness.add(['one']), harness.parts));
    expect([harness.failures, (await harness.results()).out]).toEqual([[defect], ['answer one']]);
  });
});

function endedAnswer(id: string, text: string) {
  const log = new AnswerLog();
  log.addText(text);
  return { job: backgroundView({ id }), end: jobDone({ text: null }), text: log };
}

describe('The answer of a job on the same host', () => {
  async function running(lines: readonly string[]) {
    const harness = new BatchHarness();
    const feeder = new BatchFeeder(await harness.add(lines), harness.parts);
    const run = feeder.runBatch();
    run.catch(() => {}); // some tests let it fail
    await settled();
    return { harness, feeder, run, open: [...harness.open] };
  }

  it('is stored once, as the result of its line, and its job is removed', async () => {
    const { harness, feeder, run, open } = await running(['one', 'two']);
    expect(await Promise.all(open.map(([id, text]) => feeder.takeAnswer(endedAnswer(id, `"${text}"`))))).toEqual([
      true,
      true,
    ]);
    await run;
    expect((await harness.results()).out).toEqual(['\\"one\\"', '\\"two\\"']);
    expect([harness.open.size, harness.outcomes]).toEqual([0, ['succeeded', 'succeeded']]);
    expect(await feeder.takeAnswer(endedAnswer('late', 'x'))).toBe(false);
  });

  it.each([
    ['the service stops', (feeder: BatchFeeder) => feeder.stopFeeding()],
    [
      'another host has the batch',
      (feeder: BatchFeeder, harness: BatchHarness) => {
        harness.isLeased = false;
        feeder.wake();
      },
    ],
    [
      'the result cannot be stored',
      (_: BatchFeeder, harness: BatchHarness) => {
        harness.store.advance = () => Promise.reject(storeUnavailable());
        harness.hasWorker = true;
      },
    ],
    [
      'its job cannot be removed',
      (_: BatchFeeder, harness: BatchHarness) => {
        harness.removeJob = () => Promise.reject(storeUnavailable());
        harness.hasWorker = true;
      },
    ],
  ])('is stored with its job if %s', async (_, happens) => {
    const { harness, feeder, run, open } = await running(['one']);
    harness.hasWorker = false;
    const taken = feeder.takeAnswer(endedAnswer(open[0]?.[0] ?? '', 'answer one'));
    await settled();
    happens(feeder, harness);
    await harness.clock.advance(500);
    expect(await taken).toBe(false);
    await Promise.allSettled([run]);
    expect(await feeder.takeAnswer(endedAnswer('late', 'x'))).toBe(false);
  });

  it('is stored with its job if its line is not open, because the line would never be written', async () => {
    const { feeder, run } = await running(['one']);
    expect(await Promise.race([feeder.takeAnswer(endedAnswer('earlier', 'x')), settled(50)])).toBe(false);
    feeder.stopFeeding();
    await run;
  });

  it('is stored with its job while 4 MiB of answers wait for their results', async () => {
    const { harness, feeder, open } = await running(['one', 'two']);
    harness.hasWorker = false;
    const [[first = ''] = [], [second = ''] = []] = open;
    const taken = feeder.takeAnswer(endedAnswer(first, 'x'.repeat(4 * mib)));
    expect(await feeder.takeAnswer(endedAnswer(second, 'x'))).toBe(false);
    harness.hasWorker = true;
    feeder.wake();
    expect(await taken).toBe(true);
    feeder.stopFeeding();
  });
});
