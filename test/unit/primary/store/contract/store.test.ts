import { expiryAt, sumCounts } from '../../../../../src/primary/store/contract/store.js';

it('Counts of two removals are added by kind', () => {
  expect(sumCounts({ files: 1, jobs: 2 }, { jobs: 3, usage: 1 })).toEqual({ files: 1, jobs: 5, usage: 1 });
});

it('Each kind of data expires after its own time', () => {
  const expiry = expiryAt(1_000_000_000, { conversationTtlMs: 10, jobTtlMs: 20 });
  expect(expiry).toMatchObject({ conversations: 999_999_990, responses: 999_999_990, jobs: 999_999_980 });
});
