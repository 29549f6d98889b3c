import type { JobEnd } from '../../../../src/shared/job.js';
import { JobReport } from '../../../../src/worker/jobs/job-report.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const end: JobEnd = {
  type: 'job-end',
  outcome: 'timeout',
  failure: { code: 'timeout', message: 'too long' },
  queueMs: 5,
  executionMs: 70,
  processorMs: 60,
  peakMemoryBytes: 4096,
};

describe('The report of a job', () => {
  it('counts a job without any event as not admitted', async () => {
    const clock = new FakeClock();
    const report = new JobReport(clock);
    await clock.advance(30);
    expect(report.wasAdmitted).toBe(false);
    expect(report.figures()).toMatchObject({ outcome: 'cancelled', queueMs: 30, executionMs: 0 });
  });

  it('counts a waiting job as cancelled in the queue, for the time since it arrived', async () => {
    const clock = new FakeClock();
    const report = new JobReport(clock);
    report.follow({ type: 'job-queued', position: 1, reason: 'slot' });
    await clock.advance(30);
    expect(report.wasAdmitted).toBe(true);
    expect(report.figures()).toEqual({
      outcome: 'cancelled',
      queueMs: 30,
      executionMs: 0,
      processorMs: null,
      peakMemoryBytes: null,
    });
  });

  it('counts a running job as cancelled, for the time since its start', async () => {
    const clock = new FakeClock();
    const report = new JobReport(clock);
    await clock.advance(30);
    report.follow({ type: 'job-start', queueMs: 25 });
    await clock.advance(40);
    report.follow({ type: 'text-delta', text: 'hello' });
    expect(report.figures()).toMatchObject({ outcome: 'cancelled', queueMs: 25, executionMs: 40 });
  });

  it('contains the figures from the end of the job', async () => {
    const clock = new FakeClock();
    const report = new JobReport(clock);
    report.follow({ type: 'job-start', queueMs: 5 });
    report.follow(end);
    await clock.advance(1000);
    expect(report.wasAdmitted).toBe(true);
    expect(report.figures()).toMatchObject({
      outcome: 'timeout',
      queueMs: 5,
      executionMs: 70,
      processorMs: 60,
      peakMemoryBytes: 4096,
    });
  });
});
