import { LastHour } from '../../../../src/features/live-status/last-hour.js';
import type { JobEnd } from '../../../../src/shared/job.js';
import type { FamilyFigures } from '../../../../src/shared/metrics.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';

const minuteMs = 60_000;

function answers(...counts: readonly (readonly [code: string, count: number])[]): FamilyFigures[] {
  const values = counts.map(([code, value]) => ({ labels: { method: 'GET', route: '/ask', code }, value }));
  const family = { help: '', type: 'counter', aggregator: 'sum' } as const;
  const other = { ...family, name: 'model_api_errors_total', values: [{ labels: { code: '500' }, value: 100 }] };
  return [other, { ...family, name: 'model_api_http_requests_total', values }];
}

function ended(hour: LastHour, ...ends: readonly JobEnd[]): void {
  for (const end of ends) hour.jobEnded(end);
}

describe('The last hour', () => {
  it('begins with the minute of the start, with nothing in it', () => {
    const hour = new LastHour(new FakeClock());
    const nothing = { requests: 0, errors: 0, jobs: 0, failed_jobs: 0, refused: 0, job_ms: null };
    expect(hour.body).toEqual([{ at: '2026-01-01T00:00:00.000Z', ...nothing }]);
  });

  it('counts answers, and how many of them indicate a fault of the service', () => {
    const hour = new LastHour(new FakeClock());
    hour.countRequests(answers(['200', 5], ['404', 2], ['500', 1], ['503', 3], ['504', 0]));
    hour.countRequests(answers(['200', 1]));
    hour.countRequests([]);
    expect(hour.body).toMatchObject([{ requests: 12, errors: 4 }]);
  });

  it('does not count files of the console, however they were answered', () => {
    const hour = new LastHour(new FakeClock());
    const [, family] = answers(['200', 2]);
    const values = ['200', '500'].map((code) => ({ labels: { method: 'GET', route: '/console/', code }, value: 30 }));
    hour.countRequests([{ ...(family as FamilyFigures), values: [...(family?.values ?? []), ...values] }]);
    expect(hour.body).toMatchObject([{ requests: 2, errors: 0 }]);
  });

  it('has a total of requests since the start, without those about the service itself', async () => {
    const clock = new FakeClock();
    const hour = new LastHour(clock);
    const [, family] = answers();
    const routes = ['/ask', '/v1/responses', '/health', '/health/history', '/metrics', '/status', '/status/stream'];
    const values = [...routes, '/version', '/setup', '/console/'].map((route) => ({ labels: { route }, value: 3 }));
    hour.countRequests([{ ...(family as FamilyFigures), values }]);
    await clock.advance(90 * minuteMs);
    hour.countRequests(answers(['200', 2]));
    expect(hour.totalRequests).toBe(8);
    expect(hour.body.at(-1)).toMatchObject({ requests: 2 });
  });

  it('counts refusals', async () => {
    const clock = new FakeClock();
    const hour = new LastHour(clock);
    for (let minute = 0; minute < 3; minute++) {
      for (let count = 0; count <= minute; count++) hour.countRefusal();
      await clock.advance(minuteMs);
    }
    expect(hour.body.map(({ refused }) => refused)).toEqual([1, 2, 3, 0]);
  });

  it('counts jobs, those that failed, and how long they took from their arrival', () => {
    const hour = new LastHour(new FakeClock());
    ended(hour, jobDone({ queueMs: 60, executionMs: 40 }), jobFailed('cancelled', { queueMs: 0, executionMs: 100 }));
    ended(hour, jobFailed('timeout', { queueMs: 0, executionMs: 3000 }), jobFailed('queue_timeout', { queueMs: 100 }));
    const [minute] = hour.body;
    expect(minute).toMatchObject({ jobs: 4, failed_jobs: 2 });
    expect(Math.abs((minute?.job_ms?.p50 ?? 0) - 100)).toBeLessThanOrEqual(2);
    expect(Math.abs((minute?.job_ms?.p95 ?? 0) - 3000)).toBeLessThanOrEqual(60);
  });

  it('shows each of the last sixty minutes once, including those in which nothing was counted', async () => {
    const clock = new FakeClock();
    const hour = new LastHour(clock);
    for (let minute = 0; minute < 100; minute++) {
      if (minute % 2 === 0) ended(hour, jobDone());
      await clock.advance(minuteMs);
    }
    expect(hour.body).toHaveLength(60);
    expect(hour.body[0]?.at).toBe('2026-01-01T00:41:00.000Z');
    expect(hour.body.at(-1)).toMatchObject({ at: '2026-01-01T01:40:00.000Z', jobs: 0 });
    expect(hour.body.filter(({ jobs }) => jobs === 1)).toHaveLength(29);
  });

  it('continues after the clock was set back, and drops minutes in the future', () => {
    let nowMs = 10 * minuteMs;
    const hour = new LastHour({ now: () => nowMs });
    ended(hour, jobDone());
    nowMs = 5 * minuteMs;
    expect(hour.body).toMatchObject([{ jobs: 0 }]);
    ended(hour, jobDone());
    expect(hour.body).toMatchObject([{ at: '1970-01-01T00:05:00.000Z', jobs: 1 }]);
    nowMs = 10 * minuteMs;
    expect(hour.body).toMatchObject([{ at: '1970-01-01T00:10:00.000Z', jobs: 0 }]);
  });
});

describe('The last day', () => {
  const stepMs = 5 * minuteMs;

  it('has the sums of each five minutes that have ended, and leaves out steps without events', async () => {
    const clock = new FakeClock();
    const hour = new LastHour(clock);
    hour.countRequests(answers(['200', 3], ['500', 1]));
    ended(hour, jobDone({ queueMs: 0, executionMs: 100 }));
    await clock.advance(minuteMs);
    hour.countRefusal();
    ended(hour, jobFailed('timeout', { queueMs: 0, executionMs: 3000 }));
    expect(hour.day).toEqual([]);
    await clock.advance(2 * stepMs);
    ended(hour, jobDone());
    await clock.advance(stepMs);
    const [first, second, ...others] = hour.day;
    expect(first).toMatchObject({ at: '2026-01-01T00:00:00.000Z', requests: 4, errors: 1, jobs: 2, failed_jobs: 1 });
    expect(first?.refused).toBe(1);
    expect(Math.abs((first?.job_ms?.p95 ?? 0) - 3000)).toBeLessThanOrEqual(60);
    expect(second).toMatchObject({ at: '2026-01-01T00:10:00.000Z', jobs: 1 });
    expect(others).toEqual([]);
    expect(hour.day).toHaveLength(2);
  });

  it('forgets steps after a day, also if no one looks, and none before', async () => {
    const clock = new FakeClock();
    const hour = new LastHour(clock);
    for (let step = 0; step < 300; step++) {
      ended(hour, jobDone());
      await clock.advance(stepMs);
    }
    expect(hour.day).toHaveLength(288);
    expect(hour.day.every(({ jobs }) => jobs === 1)).toBe(true);
    await clock.advance(23 * 12 * stepMs);
    expect(hour.day).toHaveLength(12);
    await clock.advance(12 * stepMs);
    expect(hour.day).toEqual([]);
  });

  it('continues after the clock was set back', () => {
    let nowMs = 100 * stepMs;
    const hour = new LastHour({ now: () => nowMs });
    ended(hour, jobDone());
    nowMs += stepMs;
    expect(hour.day).toHaveLength(1);
    nowMs = 50 * stepMs;
    expect(hour.day).toEqual([]);
    ended(hour, jobDone());
    nowMs += stepMs;
    expect(hour.day).toMatchObject([{ jobs: 1 }]);
  });
});

describe('The durations', () => {
  const bodyAfter = (durationsMs: readonly number[]) => {
    const hour = new LastHour(new FakeClock());
    ended(hour, ...durationsMs.map((executionMs) => ({ ...jobDone(), queueMs: 0, executionMs })));
    return hour.body[0]?.job_ms;
  };

  it.each([1, 17, 250, 3999, 86_400_000])('are accurate within one percent: %d', (ms) => {
    const { p50 = 0, p95 = 0 } = bodyAfter([ms]) ?? {};
    for (const shown of [p50, p95]) expect(Math.abs(shown - ms)).toBeLessThanOrEqual(0.01 * ms);
  });

  it.each([
    [0, 1],
    [0.4, 1],
    [17.4, 17],
    [2 ** 40, 2 ** 31 - 1],
  ])('are counted as the nearest one from a millisecond to 24 days: %d', (ms, shown) => {
    expect(Math.abs((bodyAfter([ms])?.p50 ?? 0) - shown)).toBeLessThanOrEqual(0.01 * shown);
  });

  it('have the quantiles of the added values, in any order', () => {
    const { p50 = 0, p95 = 0 } = bodyAfter(Array.from({ length: 1000 }, (_, index) => 1000 - index)) ?? {};
    expect(Math.abs(p50 - 500)).toBeLessThanOrEqual(5);
    expect(Math.abs(p95 - 950)).toBeLessThanOrEqual(10);
  });
});
