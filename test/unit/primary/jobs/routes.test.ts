import { orAborted } from '../../../../src/shared/async.js';
import { cliError } from '../../../../src/shared/errors.js';
import {
  all,
  answers,
  barrier,
  forever,
  hangs,
  type JobHarness,
  jobHarness,
  type Script,
  throws,
} from '../../../support/jobs/job-harness.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

const refused: Script = throws(cliError('auth', 'no', { scope: 'account' }));
/** Script that thinks and writes nothing. */
const thinks: Script = (_, signal) => orAborted(forever, signal);
const usedUp: Script = throws(cliError('quota', 'no', { quota: { scope: 'account', resetsAt: null } }));

/** Returns a background job as it is accepted. */
function routed({ router }: JobHarness, model: string) {
  const request = jobRequest({ model });
  return { request, route: router.route(request) };
}

describe('The CLI of a job', () => {
  it('does not change after the admission, whatever models its key allows later', async () => {
    const harness = jobHarness({ maxActive: 2, cliLimits: { local: 2 }, script: [usedUp, thinks] });
    harness.models = ['local/x'];
    await harness.finish();
    const circuits = harness.clis[0]?.health.circuits;
    circuits?.tryAgain();
    const probe = harness.start();
    await harness.clock.advance(1);
    expect(await harness.finish()).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota' } });
    harness.models = ['other/y'];
    probe.leave(cliError('other', 'gone'));
    await probe.events;
    harness.models = ['local/x'];
    expect(await harness.finish()).toMatchObject({ outcome: 'ok', model: 'local/eliza' });
    expect(circuits?.isClosed).toBe(true);
    await harness.expectTidy();
  });

  it('blocks only its jobs while its breaker is open', async () => {
    const harness = jobHarness({ cliLimits: { local: 2 }, script: [usedUp] });
    await harness.finish({ model: 'local/x' });
    expect(await harness.finish({ model: 'local/x' })).toMatchObject({ outcome: 'cli_error' });
    expect(harness.runner.mayStart(routed(harness, 'local/x'), true)).toBe(false);
    expect(harness.runner.mayStart(routed(harness, 'other/x'), false)).toBe(true);
    expect(await harness.finish({ model: 'other/x' })).toMatchObject({ outcome: 'ok', model: 'eliza' });
    await harness.expectTidy();
  });

  it('refuses and counts them even if their clients may not search', async () => {
    const harness = jobHarness({ script: [usedUp] });
    await harness.finish();
    const refusal = { outcome: 'cli_error', failure: { reason: 'quota' } };
    expect(await harness.finish({ search: { path: 'tools.0' } })).toMatchObject(refusal);
    expect(harness.outcomes()).toHaveLength(2);
    await harness.expectTidy();
  });

  it('has no slot for a background job at its limit, but one with the rank of a caller may wait', async () => {
    const gate = barrier();
    const harness = jobHarness({ maxActive: 2, cliLimits: { local: 1 }, start: gate.wait });
    const running = all(harness.run({ model: 'local/x' }));
    const may = ['local/x', 'other/x'].map((model) => harness.runner.mayStart(routed(harness, model), false));
    expect([may, harness.runner.mayStart(routed(harness, 'local/x'), true)]).toEqual([[false, true], true]);
    gate.open();
    await running;
    await harness.expectTidy();
  });

  it('is no other one after its model has got a message to the answer, which the other would not get', async () => {
    const fails =
      (isSteered: boolean): Script =>
      async (sink) => {
        if (isSteered) sink.added?.('In German.');
        throw cliError('quota', 'no', { quota: { scope: 'account', resetsAt: null } });
      };
    const request = { model: 'local/x', fallbacks: ['other/x'] };
    const plain = jobHarness({ cliLimits: { local: 2 }, script: [fails(false), answers] });
    expect(await plain.finish(request)).toMatchObject({ outcome: 'ok' });
    const steered = jobHarness({ cliLimits: { local: 2 }, script: [fails(true), answers] });
    expect(await steered.finish(request)).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota' } });
    await steered.expectTidy();
  });

  it('starts processes in advance only for its jobs', async () => {
    const gate = barrier();
    const harness = jobHarness({ cliLimits: { local: 5 }, start: gate.wait });
    const jobs = ['other/a', 'local/b', 'other/c'].map((model) => all(harness.run({ model })));
    const waiting = () =>
      harness.clis.map((cli) => harness.runner.openJobs.nextJobs(cli).map(({ launch }) => launch.model));
    expect(waiting()).toEqual([['local/b'], []]);
    gate.open();
    await Promise.all(jobs);
    await harness.expectTidy();
  });

  it('is the only one that retains a process for a conversation', async () => {
    const harness = jobHarness({ cliLimits: { local: 1 } });
    const id = await harness.turn(null, { model: 'local/x' });
    await harness.turn(id, { model: 'other/x' });
    expect(harness.forgotten).toEqual([`${id} at `, `${id} at local`]);
    await harness.expectTidy();
  });
});

describe('The failures and answers of jobs', () => {
  it('count for one client only until a second client is affected, and then blocked jobs are retried at all CLIs', async () => {
    const seems = throws(cliError('auth', 'no'));
    const harness = jobHarness({ cliLimits: { local: 2 }, script: [seems, seems, usedUp] });
    for (let n = 0; n < 2; n++) await harness.finish({ client: 'key first' });
    await harness.finish({ client: 'key first', model: 'local/x' });
    expect(await harness.finish({ client: 'key first' })).toMatchObject({ failure: { reason: 'auth' } });
    expect(await harness.finish({ client: 'key second' })).toMatchObject({ outcome: 'ok' });
    expect(harness.clis.map(({ health }) => health.circuits.status[0].state)).toEqual(['half_open', 'closed']);
    await harness.expectTidy();
  });

  it('close the breaker at the first text of an answer', async () => {
    const harness = jobHarness({ script: [usedUp, hangs] });
    await harness.finish();
    harness.health.circuits.tryAgain();
    const probe = harness.start();
    await harness.clock.advance(1);
    expect(harness.health.circuits.isClosed).toBe(true);
    probe.leave(cliError('other', 'gone'));
    await probe.events;
    await harness.expectTidy();
  });

  it('end the waiting processes if their credential may be invalid or they may not start', async () => {
    const harness = jobHarness({ script: [answers, usedUp, refused] });
    await harness.finish();
    await harness.finish();
    harness.health.circuits.tryAgain();
    expect(harness.flushes).toBe(0);
    await harness.finish();
    expect(harness.flushes).toBeGreaterThan(0);
    await harness.clock.advance(0);
    expect(harness.health.checks.current).toMatchObject({ status: 'not_ready', trigger: 'failure' });
    await harness.expectTidy();
  });

  it('have no effect if a job was not started', async () => {
    const harness = jobHarness({ maxWaiting: 1, script: [hangs] });
    const [running, waiting] = [harness.start(), harness.start()];
    waiting.leave(cliError('auth', 'no', { scope: 'account' }));
    await waiting.events;
    expect([harness.flushes, harness.health.checks.history(null)]).toEqual([0, []]);
    running.leave(cliError('other', 'gone'));
    await running.events;
    await harness.expectTidy();
  });
});
