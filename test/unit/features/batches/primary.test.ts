import { AnswerLog } from '../../../../src/features/background/event-log.js';
import { batchParts } from '../../../../src/features/batches/primary.js';
import { MemoryJobs } from '../../../../src/features/stores/memory/memory-store.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { jobDone } from '../../../support/jobs/job-records.js';
import { acceptedJob } from '../../../support/stores/shared-jobs.js';

it('A failure in a batch is logged if it is a defect, and only then', () => {
  const log = new LogBook();
  const parts = { config: { maxConcurrent: 1, maxJobs: 1 }, host: { clock: new FakeClock(), log }, store: {} };
  const { onFailure } = batchParts(
    parts as unknown as Parameters<typeof batchParts>[0],
    {} as Parameters<typeof batchParts>[1],
    () => {},
  );
  onFailure(storeUnavailable());
  expect(log.events).toEqual([]);
  onFailure(new TypeError('a defect'));
  expect(log.entries).toMatchObject([{ level: 'error', event: 'internal_error' }]);
});

it('The answer of a line that another host has run is read from the store, unless its job is removed', async () => {
  const store = new MemoryJobs();
  const log = new AnswerLog();
  log.addText('x'.repeat(40_000));
  await store.accept(acceptedJob('j1'));
  const background = { get: (id: string) => (id === 'here' ? {} : null) };
  const parts = { config: { maxConcurrent: 1, maxJobs: 1 }, host: {}, store: { jobs: store }, background };
  const { jobs } = batchParts(
    parts as unknown as Parameters<typeof batchParts>[0],
    {} as Parameters<typeof batchParts>[1],
    () => {},
  );
  const { client } = acceptedJob('j1').request;
  expect(await jobs.findEndedLine('j1', client)).toBeNull();
  expect(await jobs.findEndedLine('here', client)).toBeNull();
  expect(await jobs.findEndedLine('other', client)).toBe('missing');
  await store.startJob('j1', 1);
  await store.endJob('j1', { status: 'succeeded', endedAt: 2, end: jobDone({ text: null }) }, log);
  const found = await jobs.findEndedLine('j1', client);
  if (found === null || found === 'missing') throw new Error('the job has ended');
  expect([found.job.status, (await found.text()).length]).toEqual(['succeeded', 40_000]);
  await jobs.removeJob('j1');
  await expect(found.text()).rejects.toMatchObject({ code: 'store_unavailable' });
});
