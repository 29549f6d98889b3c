import { addMessage, interruptJob } from '../../../../src/features/steering/steered-job.js';
import { Job } from '../../../../src/primary/jobs/job.js';
import { JobStream } from '../../../../src/primary/jobs/job-stream.js';
import type { RouteChoice } from '../../../../src/primary/jobs/route-choice.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

/** Starts a job whose turn takes messages, and can be ended once. */
function running() {
  const choice = { route: { label: null }, passed: [], left: [] } as unknown as RouteChoice;
  const parts = { choice, request: jobRequest(), events: new JobStream(true), background: null, trace: null };
  const job: Job = new Job(parts, new AbortController().signal, new FakeClock());
  job.prepared = { launch: { model: null, system: null, schema: null, effort: null }, turn: null, chain: null };
  const taken: string[] = [];
  let isOpen = true;
  const interrupt = () => {
    const wasOpen = isOpen;
    isOpen = false;
    return wasOpen;
  };
  job.startJob(1000);
  job.turnControl = { interrupt, addMessage: async (text) => taken.push(text) > 0 };
  return { job, taken };
}

describe('A running job', () => {
  it('stays interrupted if a second request comes too late', () => {
    const { job } = running();
    expect([interruptJob(job), interruptJob(job), job.isInterrupted]).toEqual([true, false, true]);
    job.closeJob();
  });

  it('takes a limited number of messages, and of bytes', async () => {
    const { job, taken } = running();
    const fates = [];
    for (let at = 0; at < 22; at++) fates.push(await addMessage(job, `${at}`));
    expect(fates.map(Number).join('')).toBe(`${'1'.repeat(20)}00`);
    expect(taken).toHaveLength(20);
    const other = running();
    expect(await addMessage(other.job, 'é'.repeat(100_000))).toBe(true);
    expect(await addMessage(other.job, 'é'.repeat(100_000))).toBe(false);
    expect(await addMessage(other.job, 'short')).toBe(true);
    job.closeJob();
    other.job.closeJob();
  });
});
