import { RetryAdvice } from '../../../../src/primary/jobs/retry-advice.js';

function adviceAfter(slots: number, durationsMs: readonly number[]): RetryAdvice {
  const advice = new RetryAdvice(slots);
  for (const ms of durationsMs) advice.recordDuration(ms);
  return advice;
}

describe('The advised time until a retry', () => {
  it('is a second while no job has ended', () => {
    const advice = new RetryAdvice(4);
    expect([advice.medianMs, advice.seconds(0), advice.seconds(1000)]).toEqual([0, 1, 1]);
  });

  it.each<[number, readonly number[], number, number]>([
    [1, [4000], 3, 12],
    [4, [4000], 3, 3],
    [4, [4100], 4, 5], // rounded up
    [2, [1000, 60_000, 2000], 4, 4], // the median
    [2, [1000, 60_000, 2000], 0, 1],
    [1, [60_000], 100, 300],
  ])('with %i slots, after jobs of %j ms and with %i ahead is %i s', (slots, durationsMs, ahead, seconds) => {
    expect(adviceAfter(slots, durationsMs).seconds(ahead)).toBe(seconds);
  });

  it('is based on the last fifty jobs', () => {
    const older = Array.from({ length: 50 }, () => 60_000);
    const newer = Array.from({ length: 50 }, () => 2000);
    expect(adviceAfter(1, [...older, ...newer.slice(0, 24)]).medianMs).toBe(60_000);
    expect(adviceAfter(1, [...older, ...newer]).medianMs).toBe(2000);
  });
});
