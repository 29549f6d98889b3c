import { isOpenBatch } from '../../../../../src/features/stores/contract/files.js';
import { batchOf } from '../../../../support/stores/file-store-contract.js';

it('A batch is open until it has ended or failed', () => {
  const { progress } = batchOf('a');
  const batchStatuses = ['waiting', 'running', 'ended', 'failed'] as const;
  const open = batchStatuses.filter((status) => isOpenBatch({ progress: { ...progress, status } }));
  expect(open).toEqual(['waiting', 'running']);
});
