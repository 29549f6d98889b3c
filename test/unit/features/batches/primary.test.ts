import { batchParts } from '../../../../src/features/batches/primary.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';

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
