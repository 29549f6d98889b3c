import { cliError, RelayError } from '../../../../src/shared/errors.js';
import type { JobRequest } from '../../../../src/shared/job.js';
import { chained } from '../../../../src/shared/text/chain.js';
import { settled } from '../../../support/basics/settled.js';
import { textDelta } from '../../../support/jobs/answer-events.js';
import { all, answers, hangs, jobHarness, type Script, throws, turnEnd } from '../../../support/jobs/job-harness.js';

const minute = 60_000;
const quota = (resetsAt: number | null = null) =>
  cliError('quota', 'a limit', { quota: { scope: 'account', resetsAt } });
const cliLimits = { a: 9, b: 9, c: 9 };
/** Request for model `a/m`, which `b/m` and then `c/m` replace. */
const asked: Partial<JobRequest> = { model: 'a/m', fallbacks: ['b/m', 'c/m'] };

describe('A job whose model cannot answer', () => {
  it.each([
    ['quota', quota()],
    ['auth', cliError('auth', 'a refused credential', { scope: 'account' })],
    ['overloaded', cliError('overloaded', 'overloaded')],
    ['start', new RelayError('spawn_error', 'could not be started')],
  ] as const)('is answered by the next one after %s', async (reason, error) => {
    const harness = jobHarness({ cliLimits, script: [throws(error), answers] });
    const end = await harness.finish(asked);
    expect(end).toMatchObject({ outcome: 'ok', model: 'b/eliza', fallback: [{ model: 'a/m', reason }] });
    expect(harness.launches.map(({ model }) => model)).toEqual(['a/m', 'b/m']);
    expect(harness.fallbacks).toEqual([`a/m > b/m: ${reason}`]);
    expect(harness.outcomes()).toEqual([['job 1', 'ok']]); // one job
    const bills = [...harness.attempts.map(({ bill }) => bill), ...harness.charges];
    expect(bills).toMatchObject([{ requested: 'a/m' }, { requested: 'b/m' }]); // a bill for each attempt
    expect(harness.processes[0]?.released).toEqual([null]); // the first process has ended
    expect(harness.room.active).toBe(0);
  });

  it.each([
    ['a crash', cliError('crashed', 'it crashed')],
    ['a refused request', cliError('request_refused', 'too long')],
    ['a time limit', new RelayError('timeout', 'too late')],
    ['a defect', new Error('a defect')],
  ])('is not answered by another one after %s', async (_what, error) => {
    const harness = jobHarness({ cliLimits, script: [throws(error), answers] });
    expect((await harness.finish(asked)).outcome).not.toBe('ok');
    expect([harness.launches.length, harness.fallbacks]).toEqual([1, []]);
  });

  it('is answered by the next one after a thought of which the client gets nothing', async () => {
    const rules = { thinking: null, acceptsDemand: true, tokenFactor: 1, thinksProgress: true };
    const script: Script = async (sink) => {
      sink.write({ type: 'thought-end', signature: 'proof' });
      throw cliError('overloaded', 'overloaded');
    };
    const harness = jobHarness({ cliLimits, script: [script, answers], extras: { rulesOf: () => rules } });
    const end = await harness.finish({ ...asked, isStreamed: true, thinking: 'progress' });
    expect(end).toMatchObject({ outcome: 'ok', model: 'b/eliza' });
  });

  it.each<[string, Script, Partial<JobRequest>]>([
    [
      'has begun to answer',
      async (sink) => {
        sink.write(textDelta('Well'));
        throw quota();
      },
      {},
    ],
    ['got results of tools', throws(quota()), { results: [{ id: 'call', text: '1', isError: false }] }],
    ['has no fallbacks', throws(quota()), { fallbacks: [] }],
  ])('fails if it %s', async (_what, script, differences) => {
    const harness = jobHarness({ cliLimits, script: [script, answers] });
    const end = await harness.finish({ ...asked, ...differences });
    expect(end).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota' } });
    expect([harness.launches.length, 'fallback' in end]).toEqual([1, false]);
  });

  it('tries one model after another, and ends with the error of the last one', async () => {
    const harness = jobHarness({ cliLimits, script: throws(quota()) });
    const fallback = [
      { model: 'a/m', reason: 'quota' },
      { model: 'b/m', reason: 'quota' },
    ];
    expect(await harness.finish(asked)).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota' }, fallback });
    expect(harness.launches.map(({ model }) => model)).toEqual(['a/m', 'b/m', 'c/m']);
  });

  it('skips models of the same account if the whole account is refused', async () => {
    const harness = jobHarness({ cliLimits, script: [throws(quota()), answers] });
    const end = await harness.finish({ model: 'a/m', fallbacks: ['a/n', 'b/m'] });
    expect([end.outcome, harness.launches.map(({ model }) => model)]).toEqual(['ok', ['a/m', 'b/m']]);
  });

  it('skips a CLI at its limit of running jobs', async () => {
    const harness = jobHarness({ cliLimits: { ...cliLimits, b: 1 }, maxActive: 3, script: [hangs, throws(quota())] });
    const other = harness.start({ model: 'b/m' });
    expect(await harness.finish(asked)).toMatchObject({ outcome: 'ok', model: 'c/eliza' });
    other.leave();
    await other.end();
  });

  it('does not wait for the API of its model if another one can answer', async () => {
    const waits: Script = async (sink) => {
      const failure = { type: 'turn-failed', reason: 'overloaded', message: 'overloaded' } as const;
      expect(sink.waits?.({ type: 'waiting', ms: 4000, failure })).toBe(true);
      expect(sink.waits?.({ type: 'waiting', ms: 8000, failure })).toBe(false);
      throw cliError('overloaded', 'overloaded');
    };
    const harness = jobHarness({ cliLimits, script: [waits, answers] });
    expect(await harness.finish(asked)).toMatchObject({ outcome: 'ok', model: 'b/eliza' });
  });
});

describe('A job whose model is refused at its arrival', () => {
  it('is sent to the next one at once, and to its own again when it is open', async () => {
    const harness = jobHarness({ cliLimits, script: [throws(quota()), answers, answers] });
    await harness.finish({ model: 'a/m' });
    const events = await all(harness.run(asked));
    const fallback = [{ model: 'a/m', reason: 'quota' }];
    expect(events[0]).toMatchObject({ type: 'job-admitted', fallback });
    expect(events.at(-1)).toMatchObject({ outcome: 'ok', model: 'b/eliza', fallback });
    await harness.clock.advance(minute);
    const end = await harness.finish(asked);
    expect([end, 'fallback' in end]).toEqual([expect.objectContaining({ outcome: 'ok', model: 'a/eliza' }), false]);
  });

  it('moves a conversation by replay, and back', async () => {
    const harness = jobHarness({ cliLimits, script: [answers, throws(quota()), answers, answers] });
    const id = await harness.turn(null, asked);
    await harness.turn(id, asked);
    await harness.clock.advance(minute / 2);
    await harness.turn(id, asked);
    const turns = harness.processes.flatMap((process) => process.turns.map(({ history }) => history.length));
    expect(harness.launches.map(({ model }) => model)).toEqual(['a/m', 'a/m', 'b/m', 'a/m']);
    expect(turns).toEqual([0, 2, 2, 4]);
  });

  it('is refused if all models are', async () => {
    const harness = jobHarness({ cliLimits, script: throws(quota()) });
    await harness.finish(asked);
    const end = await harness.finish(asked);
    expect(end).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota' } });
    expect([harness.launches.length, 'fallback' in end]).toEqual([3, false]);
  });

  it('goes with tool results to the model that made the calls', async () => {
    const call = { id: 'call', name: 'f', input: '{}' };
    const calls: Script = async () => ({ ...turnEnd, calls: [call] });
    const harness = jobHarness({ cliLimits, script: [throws(quota()), calls, answers] });
    await harness.finish({ model: 'a/m' });
    const chain = { before: 'start', asked: 'question' };
    const first = await harness.finish({ ...asked, chain, history: [] });
    expect(first).toMatchObject({ model: 'b/eliza', calls: [call] });
    await harness.clock.advance(minute); // the first model is open again
    const results = [{ id: 'call', text: '1', isError: false }];
    const before = chained('question', { role: 'assistant', text: '', calls: [call] });
    const end = await harness.finish({ ...asked, chain: { before, asked: 'next' }, history: [], results });
    expect(end).toMatchObject({ outcome: 'ok', model: 'b/eliza' });
  });
});

describe('A waiting job', () => {
  it('moves to the next model when the breaker of its own opens', async () => {
    const harness = jobHarness({ cliLimits, script: [throws(quota()), answers] });
    const first = harness.start({ model: 'a/m' });
    const [moved, unmoved] = [harness.start(asked), harness.start({ model: 'a/m' })];
    await first.end();
    const fallback = [{ model: 'a/m', reason: 'quota' }];
    expect(await moved.end()).toMatchObject({ outcome: 'ok', model: 'b/eliza', fallback });
    expect(await unmoved.end()).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota' } });
    expect(harness.room.active).toBe(0);
  });

  it('ends alone if the model that it returns to does not support it', async () => {
    const image = { mediaType: 'image/png', data: 'AAAA', at: 0 } as const;
    const harness = jobHarness({ cliLimits, script: [hangs], extras: { image: (each) => each } });
    harness.extrasOf.a = {};
    const [a, b] = harness.clis.map(({ health }) => health.circuits.account);
    a?.recordRefusal(null, 'quota', harness.clock.now() + minute);
    const running = harness.start({ model: 'c/m' });
    const waiting = harness.start({ ...asked, fallbacks: ['b/m'], images: [image] });
    a?.tryAgain();
    expect(() => b?.recordRefusal(null, 'quota', null)).not.toThrow();
    expect(await waiting.end()).toMatchObject({ failure: { code: 'validation_error' } });
    running.leave();
    await running.end();
    expect(harness.broken).toEqual([]);
  });

  it.each([
    ['waits in the background if its model is open again soon', 5 * minute, 'a/m'],
    ['is answered by another model in the background if its own is blocked for long', 50 * minute, 'b/m'],
  ])('%s', async (_what, resetMs, model) => {
    const harness = jobHarness({ cliLimits, script: [] });
    const resetsAt = harness.clock.now() + resetMs;
    harness.clis[0]?.health.circuits.account.recordRefusal(null, 'quota', resetsAt);
    const id = await harness.accept(asked);
    await harness.clock.advance(10 * minute);
    await settled();
    expect(harness.launches.map((launch) => launch.model)).toEqual([model]);
    expect(harness.backgroundEnds).toMatchObject([{ id, end: { outcome: 'ok' } }]);
  });
});
