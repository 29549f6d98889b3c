import { AnswerLog } from '../../../src/features/background/event-log.js';
import type { EndedJob, JobRecord, JobStore } from '../../../src/features/stores/contract/jobs.js';
import type { AcceptedJob } from '../../../src/primary/jobs/background-part.js';
import type { JobRequest } from '../../../src/shared/job.js';
import { until } from '../basics/until.js';
import { plainForm as form, jobDone, jobFailed, jobRequest } from '../jobs/job-records.js';
import type { StorePlaceForTests } from './store-contract.js';

const now = Date.UTC(2026, 0, 1);
/** Text with hard characters, such as half of a surrogate pair. */
const odd = "ü🚀\u0000 \u2028 “quoted” \\ '); DROP TABLE jobs; -- \ud83d";

let lastNumber = 0;

function accepted(request: Partial<JobRequest> = {}): AcceptedJob {
  const id = `job-${++lastNumber}`;
  return {
    id,
    title: `What ${id} asks: ü🚀 "'); DROP TABLE jobs; --`,
    form,
    createdAt: now + lastNumber,
    request: jobRequest({ requestId: `request-${id}`, ...request }),
  };
}

function succeeded(endedAt = now + 1000): EndedJob {
  return { status: 'succeeded', endedAt, end: { ...jobDone({ model: 'eliza' }), text: null } };
}

function logged(...texts: readonly string[]): AnswerLog {
  const log = new AnswerLog();
  for (const text of texts) log.addText(text);
  return log;
}

async function wholeText(jobs: JobStore, id: string): Promise<string> {
  let whole = '';
  for (let piece = await jobs.readText(id, 0); piece !== ''; piece = await jobs.readText(id, whole.length))
    whole += piece;
  return whole;
}

/** Returns all jobs that wait for this service. From a store that hosts share, takes them one by one. */
async function restored(jobs: JobStore): Promise<AcceptedJob[]> {
  const all: AcceptedJob[] = [];
  for await (const job of jobs.restoreJobs(now + 5000)) all.push(job);
  const { shared } = jobs;
  if (shared === null) return all;
  for (let job = await shared.takeJob('next'); job !== null; job = await shared.takeJob('next')) all.push(job);
  return all;
}

/** Tests the contract of all stores for background jobs. `isDurable`: jobs survive a restart. */
export function describeJobStore(name: string, isDurable: boolean, place: () => Promise<StorePlaceForTests>): void {
  /** `next` starts another service with the store; `lost` are the jobs that it reports as lost. */
  type StoreTest = (jobs: JobStore, next: () => Promise<JobStore>, lost: readonly JobRecord[]) => Promise<void>;

  async function withStore(test: StoreTest): Promise<void> {
    await using at = await place();
    let store = await at.open();
    const lost: JobRecord[] = [];
    const next = async () => {
      await store.close();
      store = await at.open();
      store.jobs.onLost = (job) => lost.push(job);
      return store.jobs;
    };
    try {
      await test(store.jobs, next, lost);
    } finally {
      await store.close();
    }
  }

  const inStore = (title: string, test: StoreTest) => it(title, () => withStore(test));

  describe(`The background jobs of a store (${name})`, () => {
    it('says whether they outlive the service', () =>
      withStore(async (jobs) => expect(jobs.isDurable).toBe(isDurable)));

    inStore('go from queued to running to their end, with their times', async (jobs) => {
      const job = accepted({ operation: 'chat', client: 'key ada' });
      await jobs.accept(job);
      const known = {
        id: job.id,
        client: 'key ada' as const,
        title: job.title,
        form,
        operation: 'chat',
        requestId: job.request.requestId,
      };
      const waiting = {
        ...known,
        status: 'queued',
        createdAt: job.createdAt,
        startedAt: null,
        endedAt: null,
        end: null,
      };
      expect(await jobs.findJob(job.id, 'key ada')).toEqual(waiting);
      expect(await jobs.startJob(job.id, now + 500)).toBe(true);
      const running = { ...waiting, status: 'running', startedAt: now + 500 };
      expect(await jobs.findJob(job.id, 'key ada')).toEqual(running);
      await jobs.endJob(job.id, succeeded(), logged('Hello'));
      expect(await jobs.findJob(job.id, 'key ada')).toEqual({ ...running, ...succeeded() });
      expect(await jobs.readText(job.id, 0)).toBe('Hello');
    });

    inStore('exist for their own client alone', async (jobs) => {
      const job = accepted({ client: 'key ada' });
      await jobs.accept(job);
      expect(await jobs.findJob(job.id, 'key bob')).toBeNull();
      expect(await jobs.findJob('nothing', 'key ada')).toBeNull();
      expect(await jobs.findJob('nothing', null)).toBeNull();
      expect((await jobs.findJob(job.id, null))?.client).toBe('key ada');
    });

    inStore('do not start once they have ended, or are gone', async (jobs) => {
      const [cancelled, removed] = [accepted(), accepted()];
      for (const job of [cancelled, removed]) await jobs.accept(job);
      const end = jobFailed('cancelled');
      await jobs.endJob(cancelled.id, { status: 'cancelled', endedAt: now, end }, logged());
      await jobs.removeJob(removed.id);
      expect(await jobs.startJob(cancelled.id, now)).toBe(false);
      expect(await jobs.startJob(removed.id, now)).toBe(false);
      expect(await jobs.startJob('nothing', now)).toBe(false);
    });

    inStore('have answers of any length and any characters, read from anywhere', async (jobs) => {
      const job = accepted();
      await jobs.accept(job);
      await jobs.startJob(job.id, now);
      const pieces = [odd, 'x'.repeat(100_000), '🚀'.repeat(20_000), 'the end'];
      await jobs.endJob(job.id, succeeded(), logged(...pieces));
      const whole = pieces.join('');
      expect(await wholeText(jobs, job.id)).toBe(whole);
      for (const from of [1, 5, 16_384, 99_999, whole.length - 3]) {
        const piece = await jobs.readText(job.id, from);
        expect(piece).not.toBe('');
        expect(whole.slice(from, from + piece.length)).toBe(piece);
      }
      expect(await jobs.readText(job.id, whole.length)).toBe('');
    });

    inStore('are listed newest first, page by page, by client and status', async (jobs) => {
      const ownJobs = Array.from({ length: 5 }, () => accepted({ client: 'key lister' }));
      for (const job of [...ownJobs, accepted({ client: 'key other' })]) await jobs.accept(job);
      await jobs.startJob(ownJobs[1]?.id ?? '', now);
      const order = { client: 'key lister' as const, status: null, before: null, limit: 2 };
      const newest = ownJobs.map((job) => job.id).toReversed();
      const first = await jobs.listJobs(order);
      expect(first.jobs.map((job) => job.id)).toEqual(newest.slice(0, 2));
      const second = await jobs.listJobs({ ...order, before: first.next });
      expect(second.jobs.map((job) => job.id)).toEqual(newest.slice(2, 4));
      const third = await jobs.listJobs({ ...order, before: second.next });
      expect([third.jobs.map((job) => job.id), third.next]).toEqual([newest.slice(4), null]);
      expect((await jobs.listJobs({ ...order, status: 'running' })).jobs.map((job) => job.id)).toEqual([
        ownJobs[1]?.id,
      ]);
      expect((await jobs.listJobs({ ...order, status: 'succeeded' })).jobs).toEqual([]);
    });

    inStore('are listed for all clients together, without those that are gone', async (jobs) => {
      const all = (['key ada', 'key bob', 'key ada', 'user eve'] as const).map((client) => accepted({ client }));
      for (const job of all) await jobs.accept(job);
      await jobs.removeJob(all[1]?.id ?? '');
      await jobs.startJob(all[2]?.id ?? '', now);
      const newest = [all[3], all[2], all[0]].map((job) => job?.id);
      const order = { client: null, status: null, before: null, limit: 2 };
      const first = await jobs.listJobs(order);
      const second = await jobs.listJobs({ ...order, before: first.next });
      expect([first, second].map((page) => page.jobs.map(({ id }) => id))).toEqual([
        newest.slice(0, 2),
        newest.slice(2),
      ]);
      expect(first.jobs.map(({ client }) => client)).toEqual(['user eve', 'key ada']);
      expect((await jobs.listJobs({ ...order, status: 'running' })).jobs.map(({ id }) => id)).toEqual([all[2]?.id]);
    });

    inStore('are forgotten some time after their end, and not before it', async (jobs) => {
      const [old, young, waiting] = [accepted(), accepted(), accepted()];
      for (const job of [old, young, waiting]) await jobs.accept(job);
      await jobs.endJob(old.id, succeeded(now + 1), logged('old'));
      await jobs.endJob(young.id, succeeded(now + 2), logged('young'));
      await jobs.expireJobs(now + 2);
      const { client } = old.request;
      const found = await Promise.all(
        [old, young, waiting].map(async ({ id }) => (await jobs.findJob(id, client))?.id),
      );
      expect(found).toEqual([undefined, young.id, waiting.id]);
      expect(await jobs.readText(old.id, 0)).toBe('');
    });

    inStore('wait on after a restart, and have ended as host_lost where they ran', async (jobs, next, lost) => {
      const [first, running, ended, second] = [accepted({ text: odd }), accepted(), accepted(), accepted()];
      for (const job of [first, running, ended, second]) await jobs.accept(job);
      await jobs.startJob(running.id, now + 500);
      await jobs.startJob(ended.id, now);
      await jobs.endJob(ended.id, succeeded(), logged('Hello'));
      const after = await next();
      expect(await restored(after)).toEqual(isDurable ? [first, second] : []);
      if (!isDurable) return;
      await until(() => lost.length > 0, 'the report of the lost job');
      expect(lost).toMatchObject([{ id: running.id, client: running.request.client, status: 'failed', form }]);
      const { client } = running.request;
      expect(await after.startJob(running.id, now)).toBe(false);
      expect(await after.findJob(running.id, client)).toMatchObject({
        status: 'failed',
        endedAt: now + 5000,
        end: { outcome: 'cli_error', failure: { reason: 'host_lost' }, executionMs: 4500 },
      });
      expect(await after.findJob(ended.id, client)).toMatchObject({ status: 'succeeded' });
      expect(await wholeText(after, ended.id)).toBe('Hello');
      expect(await after.startJob(first.id, now)).toBe(true);
      expect(await restored(await next())).toEqual([second]);
    });
  });
}
