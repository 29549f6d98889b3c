import { type BatchProgress, progressLine, startLine, summaryLines } from '../../../../src/command/render/batch.js';
import { paintFor } from '../../../../src/shared/text/paint.js';

const paint = paintFor(false);
const counts = { total: 10_000, skipped: 1000, answered: 1500, failed: 0, ready: 0 };
const base: BatchProgress = { ...counts, rate: 4.25, heldBecause: null };

describe('The progress of a batch', () => {
  it.each([
    [{ total: 3, concurrency: 8, retriesFailed: false }, '3 prompts, 8 at once. 2 already answered'],
    [
      { total: null, concurrency: null, retriesFailed: true },
      'in batches of the service. 2 already answered, 1 failure retried',
    ],
  ])('begins with the way of sending and the lines that exist: %j', (job, expected) => {
    expect(startLine(job, { answered: 2, failed: Number(job.retriesFailed) })).toBe(expected);
  });

  it('is a bar with rate, failures and time left', () => {
    expect(progressLine(base, paint)).toBe('█████░░░░░░░░░░░░░░░  2,500 of 10,000 · 4.25/s · 29 min 25 s left');
    expect(progressLine({ ...base, answered: 1400, ready: 97, failed: 3 }, paint)).toContain(
      '  2,500 of 10,000 · 4.25/s · 3 failed · ',
    );
  });

  it('has no bar and no remaining time if the total is unknown', () => {
    expect(progressLine({ ...base, total: null, rate: null }, paint)).toBe('2,500 done');
  });

  it('shows why nothing is sent, without control characters', () => {
    const line = progressLine({ ...base, heldBecause: 'rate_limited\u001b[2J' }, paint);
    expect(line).toMatch(/waiting: rate_limited\\x1b/);
  });

  it('ends with a summary', () => {
    expect(summaryLines({ ...base, failed: 3 }, 61_000)).toEqual([
      '1,500 answered, 3 failed, 1,000 done before in 1 min 1 s',
      '7,497 prompts not asked yet',
    ]);
  });
});
