import { plainLaunch, type TurnEnd } from '../../../../src/primary/cli/contract/adapter.js';
import type { ModelChoice } from '../../../../src/primary/cli/models.js';
import type { Job, TurnControl } from '../../../../src/primary/jobs/job.js';
import { orAborted, withResolvers } from '../../../../src/shared/async.js';
import { cliError, RelayError } from '../../../../src/shared/errors.js';
import type { JobEvent } from '../../../../src/shared/job.js';
import { settled } from '../../../support/basics/settled.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import {
  all,
  answers,
  barrier,
  clientGone,
  endOf,
  forever,
  hangs,
  type JobOptions,
  jobHarness,
  type Script,
  shutdown,
  throws,
  turnEnd,
  usage,
} from '../../../support/jobs/job-harness.js';
import { jobDone } from '../../../support/jobs/job-records.js';
import { headOf } from '../../../support/stores/response-store-contract.js';

/** Returns a script that writes endlessly, as fast as its sink accepts. */
function floods(onWrite = () => {}): Script {
  return async (sink, signal) => {
    for (;;) {
      sink.write(textDelta('x'.repeat(1000)));
      onWrite();
      if (sink.isFull) await orAborted(sink.room(), signal);
    }
  };
}

const admitted: JobEvent = { type: 'job-admitted', session: null, ignoresEffort: false };

function delta(text: string): JobEvent {
  return { type: 'text-delta', text };
}

describe('A successful job', () => {
  it('yields its start, its text as it is written, and one end', async () => {
    const harness = jobHarness();
    expect(await all(harness.run({ text: 'Hello?', system: 'Be brief.', isStreamed: true }))).toEqual([
      admitted,
      { type: 'job-start', queueMs: 0 },
      delta('Hel'),
      delta('lo'),
      jobDone({ model: 'eliza', usage }),
    ]);
    expect(harness.processes[0]?.turns).toEqual([
      { ...plainLaunch(null), text: 'Hello?', images: [], system: 'Be brief.', history: [] },
    ]);
    expect(harness.outcomes()).toEqual([['job 1', 'ok']]);
    await harness.expectTidy();
  });

  it('reads its history only when it has a slot, and turns calls into text if it has no tools', async () => {
    const harness = jobHarness();
    harness.earlier = [
      { role: 'user', text: 'How is it?' },
      { role: 'assistant', text: '', calls: [{ id: 'a', name: 'weather', input: '{}' }] },
    ];
    const history = [{ role: 'assistant', text: 'It rains.' }] as const;
    const events = await all(
      harness.run({ text: 'And now?', earlier: { ...headOf('one'), hasImages: false }, history }),
    );
    expect(endOf(events)).toMatchObject({ outcome: 'ok' });
    const call = '{"kind": "call", "name": "weather", "arguments": {}}';
    expect(harness.processes[0]?.turns[0]?.history).toEqual([
      { role: 'user', text: 'How is it?' },
      { role: 'assistant', text: `It rains.\n\n${call}` },
    ]);
    await harness.expectTidy();
  });

  it('yields its text in one piece to a caller that waits for the whole answer', async () => {
    const events = await all(jobHarness().run());
    expect(events.slice(0, -1)).toEqual([admitted, { type: 'job-start', queueMs: 0 }, delta('Hello')]);
  });

  it('reports its position while it waits: immediately, and then whenever it changes', async () => {
    const harness = jobHarness({ script: hangs });
    const jobs = [1, 2, 3].map(() => harness.start({ isStreamed: true }));
    await harness.clock.advance(50);
    jobs[0]?.leave();
    await harness.clock.advance(1050);
    for (const { leave } of jobs.slice(1)) leave();
    const positions = (events: JobEvent[]) =>
      events.flatMap((event) => (event.type === 'job-queued' ? [event.position] : []));
    const all = await Promise.all(jobs.map(({ events }) => events));
    expect(all.map(positions)).toEqual([[], [1], [2, 1]]);
  });

  it('reports how long each running job has had its slot, the longest first', async () => {
    const harness = jobHarness({ script: hangs, maxActive: 2 });
    const jobs = [harness.start()];
    await harness.clock.advance(30);
    jobs.push(harness.start(), harness.start());
    await harness.clock.advance(10);
    expect(harness.runner.openJobs.running.map(({ executionMs }) => executionMs)).toEqual([40, 10]);
    const startedAt = harness.clock.now() - 40;
    expect(harness.runner.openJobs.running.map((job) => [job.number, job.startedAt])).toEqual([
      [1, startedAt],
      [2, startedAt + 30],
    ]);
    expect(harness.room.waitingClients).toEqual([
      { client: 'key a', count: 1, oldestAt: startedAt + 30, reason: 'slot' },
    ]);
    for (const { leave } of jobs) leave();
    await Promise.all(jobs.map(({ events }) => events));
    await harness.expectTidy();
  });

  it('reports the time from its slot to its first text, and nothing for later text', async () => {
    const harness = jobHarness({
      script: async (sink, signal) => {
        await harness.clock.advance(70);
        return answers(sink, signal);
      },
    });
    await all(harness.run());
    expect(harness.firstDeltas).toEqual([70]);
  });

  it('reports its end before its processes have ended, and frees its slot only afterwards', async () => {
    const { wait, open } = barrier();
    const harness = jobHarness({ release: wait });
    expect((await harness.finish()).outcome).toBe('ok');
    expect(harness.outcomes()).toEqual([['job 1', 'ok']]);
    await settled();
    expect(harness.room.active).toBe(1);
    open();
    await settled();
    await harness.expectTidy();
  });

  it('releases its slot even if no caller reads its answer', async () => {
    const harness = jobHarness();
    const unread = harness.run();
    await harness.room.untilIdle();
    await harness.expectTidy();
    expect(endOf(await all(unread)).outcome).toBe('ok');
  });

  it('reports how long it waited and ran, and whether it had a slot', async () => {
    const harness = jobHarness({ script: hangs });
    const [first, second] = [all(harness.run()), all(harness.run())];
    await harness.clock.advance(4000);
    harness.runner.openJobs.cutAll(shutdown);
    expect(endOf(await first)).toMatchObject({ queueMs: 0, executionMs: 4000 });
    expect(endOf(await second)).toMatchObject({ queueMs: 4000, executionMs: 0 });
    await settled();
    const slots = harness.ends.map(({ requestId, hadSlot }) => [requestId, hadSlot]);
    expect(slots.toSorted()).toEqual([
      ['job 1', true],
      ['job 2', false],
    ]);
    expect(harness.waits).toEqual([0]);
  });
});

describe('The usage in the end of a job', () => {
  const used = { processorMs: 120, peakMemoryBytes: 4096 };

  it('is what its process used', async () => {
    expect(endOf(await all(jobHarness({ usages: [used] }).run()))).toMatchObject({ outcome: 'ok', ...used });
  });

  it('is also reported for a turn that fails', async () => {
    const harness = jobHarness({ script: throws(cliError('other', 'no')), usages: [used] });
    expect(await harness.finish()).toMatchObject({ outcome: 'cli_error', ...used });
  });

  it('is null if it was not measured, or if no process ran', async () => {
    const unknown = { processorMs: null, peakMemoryBytes: null };
    expect(await jobHarness().finish()).toMatchObject(unknown);
    const start = () => Promise.reject(new RelayError('spawn_error', 'not installed'));
    expect(endOf(await all(jobHarness({ start, usages: [used] }).run()))).toMatchObject(unknown);
  });

  it('is not lost if the job is cut while the tokens of its answer are counted', async () => {
    const idle = { processorMs: 0, peakMemoryBytes: 4096 };
    const harness = jobHarness({ usages: [used, idle] });
    harness.countTokens = () => forever;
    const running = harness.finish({ operation: 'chat' });
    await settled();
    harness.runner.openJobs.cutAll(shutdown);
    expect(await running).toMatchObject({ outcome: 'shutting_down', ...used });
  });
});

describe('A job that does not succeed', () => {
  it('reports the failure without the secrets of the operator', async () => {
    const script = async () => {
      throw cliError('other', 'refused: secret-of-the-harness', { stderr: 'used secret-of-the-harness' });
    };
    const events = await all(jobHarness({ script }).run());
    expect(endOf(events)).toMatchObject({ outcome: 'cli_error', failure: { message: 'refused: [A_SECRET]' } });
    expect(JSON.stringify(events)).not.toContain('secret-of');
  });

  it('ends in timeout if its execution takes too long, counted from its start', async () => {
    const harness = jobHarness({ script: hangs });
    const running = all(harness.run());
    await harness.clock.advance(119_999);
    expect(harness.room.active).toBe(1);
    await harness.clock.advance(1);
    const events = await running;
    expect(events.map(({ type }) => type)).toEqual(['job-admitted', 'job-start', 'text-delta', 'job-end']);
    expect(endOf(events)).toMatchObject({ outcome: 'timeout', executionMs: 120_000, failure: { code: 'timeout' } });
    await harness.expectTidy();
  });

  it('has its full execution time even if it had to wait', async () => {
    const harness = jobHarness({ script: hangs });
    const first = harness.start();
    const second = harness.finish();
    await harness.clock.advance(10_000);
    first.leave();
    await first.events;
    await harness.clock.advance(119_000);
    expect(harness.room.active).toBe(1);
    await harness.clock.advance(1000);
    expect(await second).toMatchObject({ outcome: 'timeout', queueMs: 10_000, executionMs: 120_000 });
    await harness.expectTidy();
  });

  it('ends in queue_timeout if it waits too long, and starts nothing', async () => {
    const harness = jobHarness({ script: hangs });
    const running = harness.start();
    const waiting = all(harness.run());
    await harness.clock.advance(14_999);
    expect(harness.room.waiting).toBe(1);
    await harness.clock.advance(1);
    await settled();
    expect(harness.room.waiting).toBe(0);
    expect(await waiting).toEqual([
      admitted,
      expect.objectContaining({ outcome: 'queue_timeout', queueMs: 15_000, executionMs: 0 }),
    ]);
    running.leave();
    await running.events;
    expect(harness.processes).toHaveLength(1);
    expect(harness.outcomes()).toEqual([
      ['job 2', 'queue_timeout'],
      ['job 1', 'cancelled'],
    ]);
    await harness.expectTidy();
  });

  it('ends in rate_limited if the budget of its client was used up while it waited, and starts nothing', async () => {
    const harness = jobHarness({ script: hangs });
    const first = harness.start();
    const second = harness.finish();
    await settled();
    harness.isBudgetUsedUp = true;
    first.leave();
    await first.events;
    expect(await second).toMatchObject({ outcome: 'rate_limited', failure: { reason: 'budget' } });
    expect(harness.processes).toHaveLength(1);
    expect(harness.outcomes()).toEqual([
      ['job 1', 'cancelled'],
      ['job 2', 'rate_limited'],
    ]);
    await harness.expectTidy();
  });

  it.each<[string, JobOptions, object]>([
    ['cli_error if the CLI reports an error', { script: throws(cliError('quota', 'no')) }, { reason: 'quota' }],
    [
      'spawn_error if the CLI cannot be started',
      { start: () => Promise.reject(new RelayError('spawn_error', 'no')) },
      {},
    ],
  ])('ends in %s', async (title, options, more) => {
    const [code] = title.split(' ');
    const harness = jobHarness(options);
    expect(await harness.finish()).toMatchObject({ outcome: code, failure: { code, message: 'no', ...more } });
    expect(harness.broken).toEqual([]);
    await harness.expectTidy();
  });

  it('ends in cancelled if its caller disconnects while it waits, and starts nothing', async () => {
    const harness = jobHarness({ script: hangs });
    const [running, waiting] = [harness.start(), harness.start()];
    await settled();
    waiting.leave();
    expect(await waiting.end()).toMatchObject({ outcome: 'cancelled' });
    expect([harness.room.active, harness.room.waiting]).toEqual([1, 0]);
    running.leave();
    await running.events;
    expect(harness.processes).toHaveLength(1);
    await harness.expectTidy();
  });

  it.each<[string, JobOptions, number]>([
    ['it runs', { script: hangs }, 1],
    ['the CLI starts', { start: (signal) => orAborted(forever, signal) }, 0],
  ])('ends in cancelled if its caller disconnects while %s', async (_, options, processes) => {
    const harness = jobHarness(options);
    const running = harness.start();
    await settled();
    running.leave();
    expect(await running.end()).toMatchObject({ outcome: 'cancelled' });
    expect(harness.processes).toHaveLength(processes);
    await harness.expectTidy();
  });

  it('ends in shutting_down if all work is cut, running or waiting', async () => {
    const harness = jobHarness({ script: hangs });
    const jobs = [1, 2, 3].map(() => harness.finish());
    await settled();
    harness.runner.openJobs.cutAll(shutdown);
    for (const end of await Promise.all(jobs))
      expect(end).toMatchObject({ outcome: 'shutting_down', failure: { retryAfterSeconds: 1 } });
    expect(harness.outcomes()).toHaveLength(3);
    await harness.expectTidy();
  });

  it.each<[string, JobOptions]>([
    ['the CLI process breaks', { script: throws(new TypeError('secret')) }],
    ['the start of the CLI breaks', { start: () => Promise.reject(new TypeError('secret')) }],
  ])('ends in internal_error if %s, and the defect is reported', async (_, options) => {
    const harness = jobHarness(options);
    const end = await harness.finish();
    expect(end).toMatchObject({ outcome: 'internal_error', failure: { code: 'internal_error' } });
    expect(JSON.stringify(end)).not.toContain('secret');
    expect(harness.broken).toEqual([new TypeError('secret')]);
    expect(harness.outcomes()).toEqual([['job 1', 'internal_error']]);
    await harness.expectTidy();
  });
});

describe('A job', () => {
  it.each<[string, Script]>([
    ['ok', answers],
    ['cli_error', throws(cliError('other', 'no'))],
  ])('retains its outcome %s if its process breaks while it is released', async (outcome, script) => {
    const broken = new TypeError('broken');
    const harness = jobHarness({ script, release: () => Promise.reject(broken) });
    expect((await harness.finish()).outcome).toBe(outcome);
    await settled();
    expect(harness.outcomes()).toEqual([['job 1', outcome]]);
    expect(harness.broken).toEqual([broken]);
    await harness.expectTidy();
  });

  it('ends with the first of several reasons', async () => {
    const harness = jobHarness({ script: hangs });
    const running = harness.start();
    await settled();
    harness.runner.openJobs.cutAll(shutdown);
    running.leave();
    harness.runner.openJobs.cutAll(new RelayError('timeout', 'later'));
    expect(await running.end()).toMatchObject({ outcome: 'shutting_down' });
    expect(harness.outcomes()).toEqual([['job 1', 'shutting_down']]);
  });

  it('cannot be cut after its end, even while its process is still being released', async () => {
    const { wait, open } = barrier();
    const harness = jobHarness({ release: wait });
    await all(harness.run());
    harness.runner.openJobs.cutAll(shutdown);
    await settled();
    open();
    await settled();
    expect(harness.outcomes()).toEqual([['job 1', 'ok']]);
    await harness.expectTidy();
  });

  it('releases its slot at its deadline even if no caller reads', async () => {
    const harness = jobHarness({ script: floods() });
    const unread = harness.run();
    const next = all(harness.run());
    await harness.clock.advance(14_000);
    expect([harness.room.active, harness.room.waiting]).toEqual([1, 1]);
    harness.runner.openJobs.cutAll(shutdown);
    await next;
    await settled();
    await harness.run().next(); // later jobs are not cut
    await harness.clock.advance(120_000);
    expect(
      harness
        .outcomes()
        .map(([, outcome]) => outcome)
        .toSorted(),
    ).toEqual(['shutting_down', 'shutting_down', 'timeout']);
    await harness.expectTidy();
    expect(endOf(await all(unread)).outcome).toBe('shutting_down');
  });

  it('does not run far ahead of its reader', async () => {
    let written = 0;
    const harness = jobHarness({ script: floods(() => (written += 1000)) });
    const caller = new AbortController();
    const events = harness.run({ isStreamed: true }, caller.signal);
    const maxAhead = 34_000;
    let read = 0;
    for (let taken = 0; taken < 20; taken++) {
      await settled();
      expect(written - read).toBeLessThan(maxAhead);
      const { value } = await events.next();
      if (value?.type === 'text-delta') read += value.text.length;
    }
    expect(read).toBeGreaterThan(2 * maxAhead);
    caller.abort(clientGone);
    await harness.room.untilIdle();
    await harness.expectTidy();
  });
});

describe('A job that its client ends early', () => {
  /** Starts a job that its client can end, after this piece of its answer. */
  async function interruptible(harness: ReturnType<typeof jobHarness>, ended: { resolve(end: TurnEnd): void }) {
    const job = harness.start({ isStreamed: true });
    await settled();
    const [running] = harness.runner.openJobs.running as [Job];
    const interrupt = () => {
      ended.resolve({ ...turnEnd, isCutShort: true });
      return true;
    };
    running.turnControl = { interrupt, addMessage: async () => true };
    return { job, running };
  }

  it.each([
    ['nothing if the model had said nothing', '', 'half_open'],
    ['that the model answers if it had said something', 'Well', 'closed'],
  ])('proves %s', async (_, said, state) => {
    const ended = withResolvers<TurnEnd>();
    const refuses = throws(cliError('quota', 'no', { quota: { scope: 'account', resetsAt: null } }));
    const script: Script = (sink) => {
      if (said !== '') sink.write(textDelta(said));
      return ended.promise;
    };
    const harness = jobHarness({ script: [refuses, script] });
    await harness.finish();
    harness.health.circuits.tryAgain();
    const { job, running } = await interruptible(harness, ended);
    running.isInterrupted = true;
    expect((running.turnControl as TurnControl).interrupt()).toBe(true);
    expect(await job.end()).toMatchObject({ outcome: 'ok', isCutShort: true });
    expect(harness.health.circuits.account.state.name).toBe(state);
    harness.health.circuits.stopTrials();
  });
});

describe('The upcoming jobs', () => {
  it('are as many as there are slots, in the order in which they get them', async () => {
    const harness = jobHarness({ script: hangs, maxActive: 2 });
    const jobs = [...'abcaa'].map((name) => all(harness.run({ client: `address ${name}`, system: `of ${name}` })));
    await settled();
    expect(harness.next()).toEqual([
      { launch: { ...plainLaunch(null), system: 'of c' }, conversation: null, tenant: null },
      { launch: { ...plainLaunch(null), system: 'of a' }, conversation: null, tenant: null },
    ]);
    harness.runner.openJobs.cutAll(shutdown);
    await Promise.all(jobs);
    await settled();
    expect(harness.next()).toEqual([]);
  });

  it('name the conversation that they continue', async () => {
    const harness = jobHarness({ script: [answers, hangs] });
    const id = await harness.turn();
    const jobs = [all(harness.run()), all(harness.run({ operation: 'chat', conversationId: id }))];
    await settled();
    const launch = plainLaunch(null);
    expect(harness.next()).toEqual([
      {
        launch,
        conversation: { id, messageCount: 2, client: 'key a', launch },
        tenant: expect.objectContaining({ client: 'key a' }),
      },
    ]);
    harness.runner.openJobs.cutAll(shutdown);
    await Promise.all(jobs);
  });
});

describe('The admission of a job', () => {
  it('does not block its conversation if the queue is full', async () => {
    const harness = jobHarness({ script: [answers, hangs], maxWaiting: 0 });
    const id = await harness.turn();
    await settled();
    const running = all(harness.run());
    await settled();
    const refused = () => harness.run({ operation: 'chat', conversationId: id });
    expect(refused).toThrow(expect.objectContaining({ code: 'concurrency_limited' }));
    harness.runner.openJobs.cutAll(shutdown);
    await running;
    await settled();
    expect(await harness.turn(id)).toBe(id);
  });

  it('counts the bytes of its text and its system text', async () => {
    const harness = jobHarness({ script: hangs });
    const jobs = [all(harness.run()), all(harness.run({ text: 'é'.repeat(300), system: 'x'.repeat(400) }))];
    expect(() => harness.run({ text: 'y' })).toThrow(expect.objectContaining({ code: 'concurrency_limited' }));
    harness.runner.openJobs.cutAll(shutdown);
    await Promise.all(jobs);
  });

  it('is refused if its message has more bytes than all conversations may hold', async () => {
    const harness = jobHarness();
    const chat = (length: number) => harness.run({ operation: 'chat', text: 'é'.repeat(length) });
    expect(() => chat(5001)).toThrow(expect.objectContaining({ code: 'validation_error' }));
    expect([harness.room.active, harness.ends.length]).toEqual([0, 0]);
    expect(endOf(await all(chat(5000))).outcome).toBe('ok');
  });

  it('is refused for a model that is not allowed, before anything is reserved', () => {
    const harness = jobHarness({ models: { allowed: ['a', 'b'] } });
    expect(() => harness.run({ model: 'c' })).toThrow(
      expect.objectContaining({ code: 'validation_error', message: 'model: must be one of a, b' }),
    );
    expect([harness.room.active, harness.ends.length]).toEqual([0, 0]);
  });
});

describe('The model of a job', () => {
  it.each<[string, string | null, Partial<ModelChoice>, string | null]>([
    ['the one requested', 'b', { fallback: 'a' }, 'b'],
    ['the default where none is requested', null, { fallback: 'a' }, 'a'],
    ['left to the CLI where there is no default', null, {}, null],
    ['the default even beside a list that does not name it', null, { fallback: 'a', allowed: ['b'] }, 'a'],
  ])('is %s', async (_, model, models, launched) => {
    const harness = jobHarness({ models });
    await all(harness.run({ model, system: 'S' }));
    expect(harness.launches).toEqual([{ ...plainLaunch(launched), system: 'S' }]);
  });

  it.each<[string, string | null, Partial<ModelChoice>, string | null]>([
    ['as requested', 'b', { label: 'c' }, 'b'],
    ['as the service calls it', null, { label: 'c' }, 'c'],
    ['by no name', null, {}, null],
  ])('is reported %s if the CLI names none', async (_, model, models, told) => {
    const script: Script = async () => ({ ...turnEnd, model: null });
    const harness = jobHarness({ script, models });
    expect(await harness.finish({ model })).toMatchObject({ outcome: 'ok', model: told });
  });
});
