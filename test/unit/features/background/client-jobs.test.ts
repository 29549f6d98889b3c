import type { Job } from '../../../../src/primary/jobs/job.js';
import type { JobListOrder } from '../../../../src/shared/background.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { RelayError } from '../../../../src/shared/errors.js';
import { settled } from '../../../support/basics/settled.js';
import { all, answers, barrier, forever, hangs, jobHarness } from '../../../support/jobs/job-harness.js';
import { jobRequest, plainForm } from '../../../support/jobs/job-records.js';
import { acceptedJob } from '../../../support/stores/shared-jobs.js';

const missing = expect.objectContaining({ code: 'not_found', message: 'no such job' });
const full = expect.objectContaining({ code: 'concurrency_limited', retryAfterSeconds: 30 });

/** Creates a job that runs forever, and one that waits. */
async function busy(limits: { maxJobs?: number } = {}) {
  const harness = jobHarness({ script: hangs, ...limits });
  const running = await harness.accept();
  await settled();
  return { harness, running, waiting: await harness.accept() };
}

const byRoot = { client: 'key root' as const, isAdmin: true, keepsEnded: false, requestId: 'request' };

describe('An administrator', () => {
  it('can end the jobs of other clients, which is logged', async () => {
    const { harness, running, waiting } = await busy();
    for (const id of [waiting, running]) {
      expect(await harness.clientJobs.delete({ id, ...byRoot })).toBe('cancelled');
      expect(await harness.view(id)).toMatchObject({ status: 'cancelled', isEndedByAdmin: true });
    }
    expect(harness.backgroundEnds.map(({ end }) => end)).toEqual(
      [1, 2].map(() => expect.objectContaining({ failure: expect.objectContaining({ cancelledBy: 'key root' }) })),
    );
    expect(harness.endedByAdmin).toEqual([
      ['key root', expect.objectContaining({ id: waiting, client: 'key a', status: 'cancelled' })],
      ['key root', expect.objectContaining({ id: running, client: 'key a', status: 'cancelled' })],
    ]);
  });

  it('cannot remove the answer of another client, but can remove answers of the administrator itself', async () => {
    const harness = jobHarness();
    const id = await harness.accept();
    const own = await harness.accept({ client: 'key root' });
    await settled();
    expect(await harness.clientJobs.delete({ id, ...byRoot })).toBe('succeeded');
    expect(await harness.statusOf(id)).toBe('succeeded');
    expect(await harness.clientJobs.delete({ id: own, ...byRoot })).toBeNull();
    await expect(harness.clientJobs.delete({ id: 'unknown', ...byRoot })).rejects.toEqual(missing);
  });

  it('sees neither the requests of other clients nor their answers', async () => {
    const { harness, running } = await busy();
    await expect(harness.view(running, 'key root')).rejects.toEqual(missing);
    await expect(all(harness.events(running, 'key root'))).rejects.toEqual(missing);
  });

  it('ends the job of a caller by its id, once', async () => {
    const harness = jobHarness({ script: hangs });
    const job = harness.start({ requestId: 'its request' });
    await settled();
    const id = harness.clientJobs.idOf(harness.runner.openJobs.running[0] as Job);
    await expect(harness.delete(id, 'key b')).rejects.toEqual(missing);
    for (const other of [`2${id.slice(1)}`, `${id.slice(0, -1)}!`, id.replace(/-.*/, '-12345678')])
      await expect(harness.clientJobs.delete({ ...byRoot, id: other })).rejects.toEqual(missing);
    expect(await harness.clientJobs.delete({ ...byRoot, id })).toBe('cancelled');
    expect(await job.end()).toMatchObject({ outcome: 'cancelled', failure: { cancelledBy: 'key root' } });
    await settled();
    await expect(harness.clientJobs.delete({ ...byRoot, id })).rejects.toEqual(missing);
    expect(harness.endedByAdmin).toEqual([
      ['key root', { id, client: 'key a', requestId: 'its request', status: 'cancelled' }],
    ]);
  });

  it('is not logged when a client ends its job itself', async () => {
    const harness = jobHarness({ script: hangs });
    const job = harness.start();
    await settled();
    expect(await harness.delete(harness.clientJobs.idOf(harness.runner.openJobs.running[0] as Job))).toBe('cancelled');
    expect(await job.end()).toMatchObject({ outcome: 'cancelled' });
    expect(harness.endedByAdmin).toEqual([]);
  });
});

describe('The jobs of callers', () => {
  /** Creates three jobs with one slot: the first runs, the others wait. */
  async function threeCallers() {
    const harness = jobHarness({ script: hangs });
    const ask = (client: ClientText, text: string) => harness.start({ client, text, requestId: `${text}!` });
    const jobs = [ask('key a', 'first'), ask('key a', 'second'), ask('key b', 'third')];
    await settled();
    return { harness, ends: jobs.map(({ end }) => end), list: harness.list };
  }

  it('are listed with an id from their admission on, before all background jobs, the newest first', async () => {
    const { harness, list } = await threeCallers();
    const background = await harness.accept();
    const { jobs, next } = await list();
    const open = {
      client: 'key a' as const,
      operation: 'ask',
      form: null,
      endedAt: null,
      createdAt: harness.clock.now(),
    };
    expect(next).toBeNull();
    expect(jobs).toEqual([
      expect.objectContaining({ ...open, title: 'second', status: 'queued', position: 1, reason: 'slot' }),
      expect.objectContaining({ ...open, title: 'first', status: 'running', position: null, requestId: 'first!' }),
      expect.objectContaining({ id: background, form: plainForm }),
    ]);
    expect(await harness.view(jobs[0]?.id ?? '')).toEqual(jobs[0]);
    await expect(harness.view(jobs[0]?.id ?? '', 'key b')).rejects.toEqual(missing);
  });

  it('are listed by status, and page by page', async () => {
    const { harness, list } = await threeCallers();
    await harness.accept();
    const titles = async (order: Partial<JobListOrder>) => (await list(order)).jobs.map(({ title }) => title);
    expect(await titles({ status: 'running' })).toEqual(['first']);
    expect(await titles({ status: 'queued' })).toEqual(['second', 'Hi']);
    expect(await titles({ status: 'succeeded' })).toEqual([]);
    const pages: string[][] = [];
    for (let before: number | null = null; ; ) {
      const { jobs, next } = await list({ before, limit: 1 });
      pages.push(jobs.map(({ title }) => title));
      if (next === null) break;
      before = next;
    }
    expect(pages).toEqual([['second'], ['first'], ['Hi']]);
  });

  it('can be ended by their client while they wait or run, but by no other client', async () => {
    const { harness, ends, list } = await threeCallers();
    const [second, first] = (await list()).jobs.map(({ id }) => id) as [string, string];
    await expect(harness.delete(second, 'key b')).rejects.toEqual(missing);
    expect(await harness.delete(second)).toBe('cancelled');
    expect(await harness.delete(first)).toBe('cancelled');
    for (const end of ends.slice(0, 2)) expect(await end()).toMatchObject({ outcome: 'cancelled' });
    expect((await list()).jobs).toEqual([]);
  });

  it('are listed to an administrator with their clients, and can be ended while they wait', async () => {
    const { harness, ends, list } = await threeCallers();
    const { jobs } = await list({ client: null });
    expect(jobs.map(({ client, status, title }) => [client, status, title])).toEqual([
      ['key b', 'queued', ''],
      ['key a', 'queued', ''],
      ['key a', 'running', ''],
    ]);
    expect(await harness.clientJobs.delete({ id: jobs[0]?.id ?? '', ...byRoot })).toBe('cancelled');
    expect(await ends[2]?.()).toMatchObject({ outcome: 'cancelled', failure: { cancelledBy: 'key root' } });
  });
});

it('A job whose request has its answer is no longer listed, even before its processes have ended', async () => {
  const harness = jobHarness({ release: () => forever });
  const id = `1-${harness.localJobs.idOf({ background: null, number: 1 }).slice(2)}`;
  await all(harness.run({ client: 'key a' }));
  expect((await harness.list()).jobs).toEqual([]);
  await expect(harness.delete(id)).rejects.toEqual(missing);
});

it('A job that has ended remains stored if its client asks for that', async () => {
  const harness = jobHarness();
  const id = await harness.accept();
  await settled();
  expect(
    await harness.clientJobs.delete({ id, client: 'key a', isAdmin: false, keepsEnded: true, requestId: 'request' }),
  ).toBe('succeeded');
  expect(await harness.statusOf(id)).toBe('succeeded');
});

describe('The open turn of a conversation', () => {
  it('is the one that runs, otherwise the first one that waits, and is shown to its client alone', async () => {
    const harness = jobHarness({ maxActive: 1, script: [answers, answers, hangs, hangs] });
    const [id, other] = [await harness.turn(), await harness.turn()];
    expect(harness.localJobs.turnsInProgress('key a')).toEqual(new Map());
    const running = harness.start({ operation: 'chat', conversationId: id, text: 'first' });
    await settled();
    const waiting = await harness.accept({ operation: 'chat', conversationId: id, text: 'second' });
    const alone = await harness.accept({ operation: 'chat', conversationId: other, text: 'third' });
    const open = harness.localJobs.turnsInProgress('key a');
    expect(open.get(id)).toMatchObject({ title: 'first', status: 'running', isBackground: false });
    expect(open.get(other)).toEqual({ id: alone, title: 'third', status: 'queued', isBackground: true });
    expect(harness.localJobs.turnsInProgress('key b')).toEqual(new Map());
    running.leave();
    await settled();
    expect(harness.localJobs.turnsInProgress('key a').get(id)).toMatchObject({
      id: waiting,
      status: 'running',
      isBackground: true,
    });
  });
});

describe('Background jobs', () => {
  it('are accepted immediately, and the answer says whether they survive a restart', async () => {
    const harness = jobHarness({ script: hangs });
    const accepted = await harness.jobs.accept(jobRequest(), plainForm);
    expect(accepted).toEqual({ id: expect.any(String), createdAt: harness.clock.now(), isDurable: false });
    await settled();
    expect(harness.localJobs.counts).toEqual({ queued: 0, running: 1 });
  });

  it('have the first words of their request as the title, also after their end', async () => {
    const harness = jobHarness();
    const { id } = await harness.jobs.accept(jobRequest({ text: `Sum\nup${'🚀'.repeat(100)}` }), plainForm);
    const title = `Sum up${'🚀'.repeat(74)}`;
    expect(await harness.view(id)).toMatchObject({ title, endedAt: null });
    await settled();
    expect(await harness.view(id)).toMatchObject({ title, status: 'succeeded' });
    expect((await harness.list()).jobs).toMatchObject([{ id, title }]);
    expect((await harness.list({ client: null })).jobs).toMatchObject([{ id, title: '' }]); // an administrator
  });

  it('are visible to their client alone, in every call', async () => {
    const harness = jobHarness({ script: [answers, hangs] });
    const done = await harness.accept();
    await settled();
    const running = await harness.accept();
    await settled();
    const waiting = await harness.accept();
    for (const id of [running, waiting, done, 'unknown']) {
      await expect(harness.view(id, 'key b')).rejects.toEqual(missing);
      await expect(harness.delete(id, 'key b')).rejects.toEqual(missing);
      await expect(all(harness.events(id, 'key b'))).rejects.toEqual(missing);
    }
    expect((await harness.list({ client: 'key b' })).jobs).toEqual([]);
    expect(await Promise.all([done, running, waiting].map((id) => harness.statusOf(id)))).toEqual([
      'succeeded',
      'running',
      'queued',
    ]);
  });

  it('send all their events again, with the full text, to a reader who connects after the end', async () => {
    const harness = jobHarness();
    const id = await harness.accept();
    const live = await all(harness.events(id));
    await settled();
    const late = await all(harness.events(id));
    expect(late.map(({ type }) => type)).toEqual(['job-start', 'text-delta', 'job-end']);
    expect(late[1]).toEqual({ type: 'text-delta', text: 'Hello' });
    expect(live.at(-1)).toMatchObject({ outcome: 'ok', queueMs: 0 });
  });

  it('end their events with an error if they are deleted meanwhile, so that no reader takes it for the normal end', async () => {
    const harness = jobHarness();
    const id = await harness.accept();
    await settled();
    const events = harness.events(id);
    await events.next();
    await harness.delete(id);
    await expect(all(events)).rejects.toEqual(missing);
  });

  it('are listed with their current state while they wait or run, and can be filtered by it', async () => {
    const { harness, running, waiting } = await busy();
    const list = async (status: 'queued' | 'running' | null) =>
      (await harness.list({ status })).jobs.map((job) => [job.id, job.status, job.position]);
    expect(await list(null)).toEqual([
      [waiting, 'queued', 1],
      [running, 'running', null],
    ]);
    expect(await list('queued')).toEqual([[waiting, 'queued', 1]]);
    expect(await list('running')).toEqual([[running, 'running', null]]);
  });
});

describe('Cancelling a background job', () => {
  it('ends it before anything starts, if it waits', async () => {
    const { harness, running, waiting } = await busy();
    const events = all(harness.events(waiting));
    expect(await harness.delete(waiting)).toBe('cancelled');
    expect((await events).at(-1)).toMatchObject({ outcome: 'cancelled' });
    expect(harness.store.starts).toEqual([running]);
    expect(harness.outcomes()).toEqual([['background 2', 'cancelled']]);
  });

  it('works while it waits among the callers', async () => {
    const { harness, waiting } = await busy();
    await harness.clock.advance(61_000);
    expect(harness.room.hasPromoted).toBe(true);
    expect(await harness.delete(waiting)).toBe('cancelled');
    expect(await harness.view(waiting)).toMatchObject({ status: 'cancelled', startedAt: null });
    expect(harness.room.waitingInBackground).toEqual([]);
    expect(harness.outcomes()).toEqual([['background 2', 'cancelled']]);
  });

  it('ends its processes if it runs, and the next job starts', async () => {
    const { harness, running, waiting } = await busy();
    expect(await harness.delete(running)).toBe('cancelled');
    expect(await harness.view(running)).toMatchObject({ status: 'cancelled', startedAt: expect.any(Number) });
    await settled();
    expect(harness.processes[0]?.released).toHaveLength(1);
    expect(await harness.statusOf(waiting)).toBe('running');
  });

  it('makes it disappear at the second call', async () => {
    const { harness, waiting } = await busy();
    await harness.delete(waiting);
    expect(await harness.delete(waiting)).toBeNull();
    await expect(harness.view(waiting)).rejects.toEqual(missing);
  });

  it('results in one end, however many calls arrive at the same time', async () => {
    const { harness, running, waiting } = await busy();
    const fates = await Promise.all([running, waiting, running, waiting].map((id) => harness.delete(id)));
    expect(fates).toEqual(Array.from({ length: 4 }, () => 'cancelled'));
    expect(harness.backgroundOutcomes()).toEqual(['cancelled', 'cancelled']);
  });

  it('works even if the store is unavailable: the call fails after a while, and the job ends later', async () => {
    const { harness, waiting } = await busy();
    harness.store.isAway = true;
    const deleted = expect(harness.delete(waiting)).rejects.toMatchObject({ code: 'store_unavailable' });
    await harness.clock.advance(6000);
    await deleted;
    harness.store.isAway = false;
    await harness.clock.advance(1000);
    expect(await harness.statusOf(waiting)).toBe('cancelled');
  });
});

describe('The room for background jobs', () => {
  it('is limited by their number', async () => {
    const { harness } = await busy({ maxJobs: 4 });
    for (const client of ['key b', 'key c', 'key d'] as const) await harness.accept({ client });
    await expect(harness.accept({ client: 'key e' })).rejects.toEqual(full);
    expect(harness.localJobs.counts).toEqual({ queued: 4, running: 1 });
  });

  it('is limited to three quarters for one client', async () => {
    const { harness } = await busy({ maxJobs: 8 });
    const sent = await Promise.allSettled(Array.from({ length: 20 }, () => harness.accept()));
    expect(sent.filter(({ status }) => status === 'fulfilled')).toHaveLength(5); // a job waits already
    await harness.accept({ client: 'key b' });
  });

  it('is three quarters for a key with all that it speaks for, and three quarters of those for one name', async () => {
    const { harness } = await busy({ maxJobs: 17 }); // a job waits already
    const accepted = async (client: ClientText, count: number) => {
      const sent = await Promise.allSettled(Array.from({ length: count }, () => harness.accept({ client })));
      return sent.filter(({ status }) => status === 'fulfilled').length;
    };
    const names = ['key app/ada', 'key app/bob', 'key app', 'key app/eve'] as const;
    const counts = [];
    for (const name of names) counts.push(await accepted(name, name === 'key app/bob' ? 2 : 20));
    expect(counts).toEqual([10, 2, 1, 0]);
    expect(await accepted('key other', 20)).toBe(3);
  });

  it('is limited by their size, also for one client', async () => {
    const harness = jobHarness({ script: hangs, maxActive: 1 });
    await harness.accept();
    await settled();
    const text = 'x'.repeat(8 * 1024 * 1024);
    for (let count = 0; count < 6; count++) await harness.accept({ text });
    await expect(harness.accept({ text })).rejects.toEqual(full);
    await harness.accept({ text, client: 'key b' });
    await harness.accept({ text: 'y'.repeat(8 * 1024 * 1024), client: 'key c' });
    await expect(harness.accept({ text: 'z', client: 'key d' })).rejects.toEqual(full);
  });

  it('is zero if MODEL_API_MAX_JOBS is 0', async () => {
    await expect(jobHarness({ maxJobs: 0 }).accept()).rejects.toEqual(full);
  });

  it('is not used up by jobs that were refused or could not be stored', async () => {
    const { harness } = await busy({ maxJobs: 2 });
    harness.store.isAway = true;
    for (let count = 0; count < 5; count++) await expect(harness.accept()).rejects.toBeInstanceOf(RelayError);
    const unknown = harness.accept({ operation: 'chat', conversationId: 'unknown' });
    await expect(unknown).rejects.toMatchObject({ code: 'validation_error' });
    harness.store.isAway = false;
    await harness.accept({ client: 'key b' });
  });
});

describe('A job that has ended', () => {
  it('is deleted after its retention time, not before', async () => {
    const harness = jobHarness({ jobTtlMs: 10_000 });
    const id = await harness.accept();
    await harness.clock.advance(9000);
    harness.stored.expireJobs();
    expect(await harness.statusOf(id)).toBe('succeeded');
    await harness.clock.advance(2000);
    harness.stored.expireJobs();
    await expect(harness.view(id)).rejects.toEqual(missing);
  });

  it('cannot be found after its retention time, even before the store has been swept', async () => {
    const harness = jobHarness({ jobTtlMs: 10_000 });
    const id = await harness.accept();
    await harness.clock.advance(11_000);
    await expect(harness.view(id)).rejects.toEqual(missing);
    await expect(harness.delete(id)).rejects.toEqual(missing);
    await expect(harness.events(id).next()).rejects.toEqual(missing);
    expect((await harness.list()).jobs).toEqual([]);
  });

  it('is not deleted while it still runs, however old it is', async () => {
    const { wait } = barrier();
    const harness = jobHarness({ start: wait, jobTtlMs: 1000 });
    const id = await harness.accept();
    await harness.clock.advance(100_000);
    harness.stored.expireJobs();
    expect(await harness.statusOf(id)).toBe('running');
  });
});

it('The unfinished jobs of the previous service run after a restart, in their order', async () => {
  const harness = jobHarness();
  const left = ['one', 'two'].map((id) => acceptedJob(id));
  for (const job of left) await harness.store.accept(job);
  harness.store.restoreJobs = async function* () {
    yield* left;
  };
  await harness.jobs.restoreJobs();
  expect(harness.jobs.open).toHaveLength(2);
  await settled();
  expect(harness.store.starts).toEqual(['one', 'two']);
  expect(harness.backgroundOutcomes()).toEqual(['ok', 'ok']);
});

it('A job is queued from its acceptance and running from its start, and shows the time of both', async () => {
  const { wait, open } = barrier();
  const harness = jobHarness({ start: wait });
  const blocker = harness.start({ client: 'key caller' });
  const createdAt = harness.clock.now();
  const id = await harness.accept();
  expect(await harness.view(id)).toMatchObject({ status: 'queued', position: 1, createdAt, startedAt: null });
  await harness.clock.advance(700);
  open();
  await blocker.events;
  await harness.jobs.untilIdle();
  expect(await harness.view(id)).toMatchObject({ status: 'succeeded', createdAt, startedAt: createdAt + 700 });
  expect(harness.backgroundEnds[0]?.end.queueMs).toBe(700);
});

describe('The open turn of a conversation', () => {
  it('is the running turn of a caller, not that of a background job whose end is being stored', async () => {
    const storing = barrier();
    const harness = jobHarness({ script: [answers, answers, hangs], maxActive: 2 });
    const conversationId = await harness.turn();
    const end = harness.store.endJob.bind(harness.store);
    harness.store.endJob = (...ended) => storing.wait().then(() => end(...ended));
    const background = await harness.accept({ operation: 'chat', conversationId, text: 'first' });
    await settled();
    expect(harness.clientJobs.openTurnOf(conversationId, 'key a')?.background?.accepted.id).toBe(background);
    const caller = harness.start({ operation: 'chat', conversationId, text: 'second', isStreamed: true });
    await settled();
    expect(harness.clientJobs.openTurnOf(conversationId, 'key a')?.request.text).toBe('second');
    storing.open();
    caller.leave();
    await caller.end();
    await settled();
    harness.stopChecks();
  });
});
