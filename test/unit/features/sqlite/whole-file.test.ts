import { expiryAt } from '../../../../src/features/sqlite/whole-file.js';

it('Each kind of data expires after its own time', () => {
  const expiry = expiryAt(1_000_000_000, { conversationTtlMs: 10, jobTtlMs: 20 });
  expect(expiry).toMatchObject({ conversations: 999_999_990, responses: 999_999_990, jobs: 999_999_980 });
});
