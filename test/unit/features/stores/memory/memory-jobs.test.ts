import { AnswerLog } from '../../../../../src/features/background/event-log.js';
import { MemoryJobs } from '../../../../../src/features/stores/memory/memory-store.js';
import type { ClientText } from '../../../../../src/shared/client.js';
import { jobDone, jobRequest, plainForm } from '../../../../support/jobs/job-records.js';

function acceptedJob(id: string, client: ClientText) {
  return { id, title: 'Hi', form: plainForm, request: jobRequest({ client }), createdAt: 1 };
}

function answerOf(text: string): AnswerLog {
  const log = new AnswerLog();
  log.addText(text);
  return log;
}

async function endOne(jobs: MemoryJobs, id: string, client: ClientText, text: AnswerLog): Promise<void> {
  await jobs.accept(acceptedJob(id, client));
  await jobs.endJob(id, { status: 'succeeded', endedAt: 2, end: jobDone() }, text);
}

describe('Background jobs in memory', () => {
  it('end once', async () => {
    const jobs = new MemoryJobs();
    await endOne(jobs, 'one', 'key a', answerOf('first'));
    await jobs.endJob('one', { status: 'failed', endedAt: 5, end: jobDone() }, answerOf('second'));
    expect(await jobs.findJob('one', 'key a')).toMatchObject({ status: 'succeeded', endedAt: 2 });
    expect(await jobs.readText('one', 0)).toBe('first');
  });

  it('are deleted from the key that has the most with all its users, and there from the user with the most', async () => {
    const jobs = new MemoryJobs();
    const tenMillion = answerOf('x'.repeat(10_000_000));
    await endOne(jobs, 'small', 'key app/ada', answerOf('small'));
    for (let count = 1; count <= 6; count++) await endOne(jobs, `other ${count}`, 'key other', tenMillion);
    for (const name of ['bob', 'eve']) await endOne(jobs, `first of ${name}`, `key app/${name}`, tenMillion);
    await endOne(jobs, 'second of eve', 'key app/eve', tenMillion);
    for (let count = 1; count <= 5; count++) await endOne(jobs, `more ${count}`, `key app/name${count}`, tenMillion);
    expect(await jobs.findJob('first of eve', 'key app/eve')).toBeNull();
    expect(await jobs.findJob('first of bob', 'key app/bob')).not.toBeNull();
    expect(await jobs.findJob('small', 'key app/ada')).not.toBeNull();
    expect(await jobs.findJob('other 1', 'key other')).not.toBeNull();
  });

  it('are limited by their number, in the same way', async () => {
    const jobs = new MemoryJobs();
    await endOne(jobs, 'mine', 'key b', answerOf(''));
    for (let count = 1; count <= 10_001; count++) await endOne(jobs, `many ${count}`, 'key a', answerOf(''));
    expect([await jobs.findJob('many 1', 'key a'), await jobs.findJob('many 2', 'key a')]).toEqual([null, null]);
    expect(await jobs.findJob('many 3', 'key a')).not.toBeNull();
    expect(await jobs.findJob('mine', 'key b')).not.toBeNull();
  });
});
