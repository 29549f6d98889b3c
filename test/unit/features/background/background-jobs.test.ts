import type { UnstoredAnswer } from '../../../../src/features/background/background-jobs.js';
import { noBounds } from '../../../../src/primary/access/clients.js';
import { isRefused } from '../../../../src/primary/jobs/job-end.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { cliError, RelayError, storeUnavailable } from '../../../../src/shared/errors.js';
import { settled } from '../../../support/basics/settled.js';
import {
  all,
  answers,
  barrier,
  hangs,
  type JobHarness,
  jobHarness,
  throws,
} from '../../../support/jobs/job-harness.js';
import { jobFailed, jobRequest, plainForm } from '../../../support/jobs/job-records.js';

/** Occupies a slot until its caller leaves. */
function occupy(harness: JobHarness) {
  const job = harness.start({ client: 'key caller', isStreamed: true });
  return async () => {
    job.leave();
    await job.events;
    await settled();
  };
}

describe('A background job starts', () => {
  it('immediately if a slot is free, and its answer is stored', async () => {
    const harness = jobHarness();
    const id = await harness.accept();
    await settled();
    expect(await harness.view(id)).toMatchObject({ status: 'succeeded', position: null, failure: null });
    expect(await harness.store.readText(id, 0)).toBe('Hello');
    expect(harness.backgroundOutcomes()).toEqual(['ok']);
    expect(harness.outcomes()).toEqual([['background 1', 'ok']]); // counted once
  });

  it('only when no caller waits for the slot', async () => {
    const harness = jobHarness({ script: hangs });
    const first = occupy(harness);
    const id = await harness.accept();
    const second = occupy(harness);
    await harness.clock.advance(5000);
    await first();
    expect([harness.room.active, harness.room.waiting]).toEqual([1, 0]);
    expect(harness.store.starts).toEqual([]);
    expect(await harness.view(id)).toMatchObject({ status: 'queued', position: 1 });
    await second();
    expect(harness.store.starts).toEqual([id]);
    await harness.delete(id, 'key a');
  });

  it('when its conversation is free, and blocks no other job until then', async () => {
    const harness = jobHarness({ maxActive: 2, script: [answers, hangs] });
    const conversationId = await harness.turn();
    const busy = harness.start({ operation: 'chat', conversationId });
    const turn = await harness.accept({ operation: 'chat', conversationId });
    const other = await harness.accept();
    await harness.clock.advance(5000);
    expect([await harness.statusOf(turn), await harness.statusOf(other)]).toEqual(['queued', 'succeeded']);
    expect(harness.room.waiting).toBe(0);
    busy.leave();
    await busy.events;
    await settled();
    expect(await harness.statusOf(turn)).toBe('succeeded');
    expect(harness.conversations.snapshot(conversationId, 'key a').messageCount).toBe(4);
  });

  it('at most once, and not at all if the store reports that it was cancelled', async () => {
    const harness = jobHarness({ script: hangs });
    const first = occupy(harness);
    const id = await harness.accept();
    await harness.store.startJob(id, 0); // like another host
    await settled();
    await first();
    expect(harness.processes).toHaveLength(1); // the process of the client
    expect(harness.backgroundOutcomes()).toEqual(['cancelled']);
    expect(await harness.statusOf(id)).toBe('cancelled');
  });
});

describe('A background job that cannot start', () => {
  it('returns to the queue and is retried every second while the store is unavailable', async () => {
    const harness = jobHarness({ script: [hangs] });
    const first = occupy(harness);
    const ids = [await harness.accept(), await harness.accept()];
    harness.store.isAway = true;
    await settled();
    await first();
    await harness.clock.advance(10_000);
    expect(harness.store.starts.length).toBeGreaterThan(8);
    expect(harness.store.starts.length).toBeLessThan(14);
    expect(harness.backgroundOutcomes()).toEqual([]);
    expect(await Promise.all(ids.map((id) => harness.statusOf(id)))).toEqual(['queued', 'queued']);
    harness.store.isAway = false;
    await harness.clock.advance(1000);
    expect(harness.backgroundOutcomes()).toEqual(['ok', 'ok']);
    expect(harness.outcomes().filter(([request = '']) => request.startsWith('background'))).toHaveLength(2);
  });

  it('because the data of its client are being removed lets jobs of other clients start at once', async () => {
    const harness = jobHarness({ script: [hangs] });
    const first = occupy(harness);
    const removed = await harness.accept({ client: 'key removed' });
    const other = await harness.accept({ client: 'key other' });
    harness.unstored = ['key removed'];
    const start = harness.store.startJob.bind(harness.store);
    harness.store.startJob = (id, at) => (id === removed ? Promise.reject(storeUnavailable()) : start(id, at));
    await settled();
    await first();
    expect([await harness.statusOf(removed, 'key removed'), await harness.statusOf(other, 'key other')]).toEqual([
      'queued',
      'succeeded',
    ]);
  });

  it('ends at once if it is cancelled between two attempts', async () => {
    const harness = jobHarness({ script: [hangs] });
    const first = occupy(harness);
    const id = await harness.accept();
    harness.store.startJob = () => Promise.reject(storeUnavailable());
    await settled();
    await first();
    expect(await harness.view(id)).toMatchObject({ status: 'queued', position: 1, reason: 'slot' });
    expect(await harness.delete(id)).toBe('cancelled');
    expect(harness.backgroundOutcomes()).toEqual(['cancelled']);
    expect(harness.outcomes().filter(([request = '']) => request.startsWith('background'))).toHaveLength(1);
  });

  it('waits while the breaker is open, and runs when the breaker closes', async () => {
    const quota = { scope: 'account', resetsAt: null } as const;
    const refused = throws(cliError('quota', 'a limit', { quota }));
    const harness = jobHarness({ script: [refused] });
    // Both clients are known before: a new second client would trigger a retry.
    for (const client of ['key a', 'key b'] as const) harness.clients.recordClient(client);
    const failed = await harness.accept();
    const ids = [await harness.accept(), await harness.accept({ client: 'key b' })] as const;
    await harness.clock.advance(20_000);
    expect(harness.backgroundOutcomes()).toEqual(['cli_error']);
    expect([await harness.statusOf(failed), await harness.statusOf(ids[0])]).toEqual(['failed', 'queued']);
    harness.health.circuits.tryAgain();
    await harness.clock.advance(3000);
    expect(harness.backgroundOutcomes()).toEqual(['cli_error', 'ok', 'ok']);
    expect(harness.outcomes()).toHaveLength(3);
    harness.health.stopChecks();
  });

  it('does not block other clients if its client has no queue place left', async () => {
    const boundsOf = (client: ClientText) =>
      client === 'key a' ? { maxRunning: 1, maxQueued: 0, weight: 1 } : noBounds(client);
    const harness = jobHarness({ maxActive: 2, script: hangs, boundsOf });
    const held = await harness.accept();
    const stuck = await harness.accept();
    await harness.clock.advance(61_500);
    expect(await harness.statusOf(stuck)).toBe('queued');
    const other = await harness.accept({ client: 'key b' });
    await settled();
    expect(await harness.statusOf(other, 'key b')).toBe('running');
    for (const id of [held, stuck]) await harness.delete(id);
    await harness.delete(other, 'key b');
  });

  it('fails without running the model if its conversation has been deleted', async () => {
    const harness = jobHarness({ script: [answers, hangs] });
    const conversationId = await harness.turn();
    const first = occupy(harness);
    const id = await harness.accept({ operation: 'chat', conversationId });
    harness.conversations.removeConversation(conversationId, 'key a');
    await first();
    expect(await harness.view(id)).toMatchObject({
      status: 'failed',
      startedAt: null,
      failure: { code: 'validation_error', reason: 'conversation_unknown' },
    });
    expect(harness.backgroundEnds.map(({ end }) => isRefused(end))).toEqual([true]);
    expect(harness.outcomes().some(([request]) => request === 'background 1')).toBe(false);
  });

  it('fails if the budget of its client was used up while it waited', async () => {
    const harness = jobHarness({ script: hangs });
    const slot = occupy(harness);
    const id = await harness.accept();
    await settled();
    harness.isBudgetUsedUp = true;
    await slot();
    expect(await harness.view(id)).toMatchObject({
      status: 'failed',
      failure: { code: 'rate_limited', reason: 'budget' },
    });
    expect(harness.store.starts).toEqual([]);
    expect(harness.backgroundOutcomes()).toEqual(['rate_limited']);
  });

  it('stays queued if the drain deadline passes before it starts', async () => {
    const harness = jobHarness({ script: hangs });
    occupy(harness);
    const id = await harness.accept();
    await harness.clock.advance(61_000); // the job is in the queue
    harness.jobs.stopStarting();
    harness.runner.openJobs.cutAll(new RelayError('shutting_down', 'the service ends'));
    await harness.clock.advance(5000);
    expect(await harness.statusOf(id)).toBe('queued');
    expect([harness.store.starts, harness.backgroundOutcomes()]).toEqual([[], []]);
    await harness.jobs.untilIdle();
  });
});

describe('The end of a background job', () => {
  it('is reported only after it has been stored', async () => {
    const { wait, open } = barrier();
    const harness = jobHarness({ start: wait });
    const id = await harness.accept();
    await settled();
    const events = all(harness.events(id));
    harness.store.isAway = true;
    open();
    await harness.clock.advance(3500);
    expect(await harness.view(id)).toMatchObject({ status: 'running', endedAt: null });
    expect(harness.backgroundOutcomes()).toEqual([]);
    harness.store.isAway = false;
    await harness.clock.advance(1000);
    expect(await harness.statusOf(id)).toBe('succeeded');
    expect((await events).at(-1)).toMatchObject({ type: 'job-end', outcome: 'ok' });
  });

  it.each([
    ['a time-out', new RelayError('timeout', 'too long'), 'timeout'],
    ['a defect', new TypeError('oops'), 'internal_error'],
    ['a CLI that fails', cliError('overloaded', 'later'), 'cli_error'],
  ] as const)('is stored with the cause of a failure: %s', async (_, thrown, code) => {
    const harness = jobHarness({ script: throws(thrown) });
    const id = await harness.accept();
    await settled();
    expect(await harness.view(id)).toMatchObject({ status: 'failed', failure: { code } });
  });
});

it('The end of a background job is not counted here if the store has the end of another host', async () => {
  const harness = jobHarness();
  harness.stored.endJob = async () => jobFailed('cancelled');
  await harness.accept();
  await settled();
  expect(harness.localJobs.counts).toEqual({ queued: 0, running: 0 });
  expect(harness.backgroundEnds).toEqual([]);
});

describe('A service that stops', () => {
  it('waits for every job if a restart would lose them', async () => {
    const harness = jobHarness();
    for (let count = 0; count < 5; count++) await harness.accept();
    await harness.jobs.untilIdle();
    expect(harness.backgroundOutcomes()).toHaveLength(5);
  });

  it('waits for the jobs that already run, but starts no other', async () => {
    const { wait, open } = barrier();
    const harness = jobHarness({ start: wait });
    const ids = [await harness.accept(), await harness.accept()];
    await settled();
    harness.jobs.stopStarting();
    open();
    await harness.jobs.untilIdle();
    await harness.clock.advance(5000);
    expect(await Promise.all(ids.map((id) => harness.statusOf(id)))).toEqual(['succeeded', 'queued']);
    expect(harness.store.starts).toEqual([ids[0]]);
  });
});

it('The background jobs check a request in the same way as the admission does', () => {
  const harness = jobHarness();
  const request = jobRequest({ operation: 'chat', conversationId: 'unknown' });
  expect(() => harness.runner.checkRequest(request)).toThrow(expect.objectContaining({ code: 'validation_error' }));
});

describe('The answer of a line of a file', () => {
  const form = { ...plainForm, line: { customId: 'a', ignored: [], isLegacyCall: false, batch: 'b' } };

  it.each([true, false])('is stored with its job only if its owner does not take it: %s', async (isTaken) => {
    const harness = jobHarness();
    const given: UnstoredAnswer[] = [];
    harness.jobs.giveAnswersOfLines(async (answer) => {
      given.push(answer);
      if (isTaken) await harness.store.removeJob(answer.job.id);
      return isTaken;
    });
    const id = await harness.accept({}, form);
    const other = await harness.accept();
    await settled();
    expect(given).toMatchObject([{ job: { id, status: 'succeeded', form }, end: { outcome: 'ok', text: null } }]);
    expect(given[0]?.text.readBlock(0)).toBe('Hello');
    expect(await harness.store.readText(id, 0)).toBe(isTaken ? '' : 'Hello');
    expect(await harness.store.readText(other, 0)).toBe('Hello');
    expect(harness.backgroundOutcomes()).toEqual(['ok', 'ok']);
    expect(harness.jobs.open).toEqual([]);
  });

  it('is not stored if its client is removed before its owner gives it back', async () => {
    const harness = jobHarness();
    harness.jobs.giveAnswersOfLines(async () => {
      harness.unstored = ['key a'];
      return false;
    });
    const id = await harness.accept({}, form);
    await settled();
    expect([await harness.statusOf(id), await harness.store.readText(id, 0)]).toEqual(['cancelled', '']);
  });

  it('is not given to its owner while the data of its client are being removed', async () => {
    const harness = jobHarness({ script: [hangs] });
    harness.jobs.giveAnswersOfLines(() => Promise.reject(new Error('nothing may be stored')));
    const first = occupy(harness);
    const id = await harness.accept({}, form);
    harness.unstored = ['key a'];
    await settled();
    await first();
    await settled();
    expect([await harness.statusOf(id), await harness.store.readText(id, 0)]).toEqual(['cancelled', '']);
  });

  it('of a job that has failed is not given to its owner', async () => {
    const harness = jobHarness({ script: throws(cliError('overloaded', 'busy')) });
    harness.jobs.giveAnswersOfLines(() => Promise.reject(new Error('it has no answer')));
    const id = await harness.accept({}, form);
    await settled();
    expect(await harness.statusOf(id)).toBe('failed');
  });
});
