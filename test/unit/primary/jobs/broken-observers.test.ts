import { answers, barrier, jobHarness, throws } from '../../../support/jobs/job-harness.js';

describe('An observer that throws', () => {
  it.each(['jobStarted', 'firstDelta', 'inputCounted'] as const)(
    'neither ends a job nor holds its slot or its turn, in %s',
    async (name) => {
      const harness = jobHarness();
      const id = await harness.turn();
      harness.brokenObservation = name;
      expect(await harness.turn(id)).toBe(id);
      harness.brokenObservation = null;
      expect(harness.broken).toEqual([new TypeError(`${name} is broken`)]);
      expect(await harness.turn(id)).toBe(id);
      await harness.expectTidy();
    },
  );

  it('does not turn the answer of a background job into a failure', async () => {
    const harness = jobHarness();
    harness.brokenObservation = 'jobEnded';
    await harness.accept();
    await harness.jobs.untilIdle();
    expect(harness.backgroundOutcomes()).toEqual(['ok']);
    expect(harness.broken).toEqual([new TypeError('jobEnded is broken')]);
    await harness.expectTidy();
  });

  it('does not keep a background job open after its end', async () => {
    const harness = jobHarness();
    harness.brokenObservation = 'ended';
    await harness.accept();
    await harness.jobs.untilIdle();
    expect([harness.localJobs.counts, harness.broken]).toEqual([
      { queued: 0, running: 0 },
      [new TypeError('ended is broken')],
    ]);
    await harness.expectTidy();
  });

  it('does not keep a job with tool results from its start', async () => {
    const harness = jobHarness();
    harness.brokenObservation = 'toolRound';
    const results = [{ id: 'call_1', text: 'sunny', isError: false }];
    const end = await harness.finish({ results, chain: { before: 'a', asked: 'b' } });
    expect(end.outcome).toBe('ok');
    expect(harness.broken).toEqual([new TypeError('toolRound is broken')]);
    await harness.expectTidy();
  });

  it('does not hold the turn of a job with a defect, even if the defect cannot be reported', async () => {
    const harness = jobHarness({ script: [answers, throws(new TypeError('secret'))] });
    const conversationId = await harness.turn();
    harness.brokenObservation = 'jobBroke';
    expect(await harness.finish({ operation: 'chat', conversationId })).toMatchObject({ outcome: 'internal_error' });
    harness.brokenObservation = null;
    expect(await harness.turn(conversationId)).toBe(conversationId);
    await harness.expectTidy();
  });
});

it('A trace that throws neither ends a job nor stops the positions of all jobs', async () => {
  const broken = (): never => {
    throw new TypeError('the trace is broken');
  };
  const turn = () => ({ ended: broken, failed: broken });
  const trace = { reroute: broken, waits: broken, waited: broken, acquiring: broken, turn };
  const { wait, open } = barrier();
  const harness = jobHarness({ traceJob: () => trace, start: wait });
  const jobs = Array.from({ length: 3 }, () => harness.start());
  await harness.clock.advance(2000);
  const last = harness.start({ isStreamed: true });
  await harness.clock.advance(2000);
  open();
  for (const { end } of [...jobs, last]) expect(await end()).toMatchObject({ outcome: 'ok' });
  const positions = (await last.events).flatMap((event) => (event.type === 'job-queued' ? [event.position] : []));
  expect(positions[0]).toBe(3);
  expect(harness.broken[0]).toEqual(new TypeError('the trace is broken'));
  await harness.expectTidy();
});

it('A job that cannot be prepared after its admission gives back its slot', async () => {
  const harness = jobHarness();
  const results = [{ id: 'call_1', text: 'sunny', isError: false }];
  const history = [{ role: 'user', text: 'Hi' } as const, { role: 'assistant', text: 'Hello' } as const];
  const broken = () => {
    throw new TypeError('no list');
  };
  harness.liveConversations = Object.assign([], { some: broken });
  for (let times = 0; times < 5; times++) {
    const run = async () => harness.finish({ history, results, chain: { before: 'a', asked: 'b' } });
    await run().catch((error) => expect(error).toEqual(new TypeError('no list')));
  }
  harness.liveConversations = [];
  expect(await harness.finish({})).toMatchObject({ outcome: 'ok' });
  await harness.expectTidy();
});
