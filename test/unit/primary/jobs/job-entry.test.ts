import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import { JobEntry, type JobEntryParts } from '../../../../src/primary/jobs/job-entry.js';

const minuteMs = 60_000;

describe('The entry of jobs', () => {
  const counter = { countRefusal: () => {} };
  const times = { nowMs: 0 };
  function createEntry(): JobEntry {
    const clock = { now: () => times.nowMs };
    const parts = { usage: counter, clientMetrics: counter, features: new FeatureHooks(), clock };
    return new JobEntry(parts as unknown as JobEntryParts);
  }

  it('adds up the refusals of the last five minutes', () => {
    const entry = createEntry();
    const recent: number[] = [];
    for (let minute = 0; minute < 8; minute++) {
      times.nowMs = minute * minuteMs;
      if (minute < 3) for (let count = 0; count <= minute; count++) entry.countRefusal('key a');
      recent.push(entry.recentlyRefused);
    }
    expect(recent).toEqual([1, 3, 6, 6, 6, 5, 3, 0]);
  });

  it('leaves out refusals in the future after the clock was set back', () => {
    const entry = createEntry();
    times.nowMs = 10 * minuteMs;
    entry.countRefusal('key a');
    times.nowMs = 9 * minuteMs;
    expect(entry.recentlyRefused).toBe(0);
    entry.countRefusal('key a');
    expect(entry.recentlyRefused).toBe(1);
    times.nowMs = 10 * minuteMs;
    expect(entry.recentlyRefused).toBe(1);
  });
});
