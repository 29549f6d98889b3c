import { sumCounts } from '../../../../../src/primary/store/contract/store.js';

it('Counts of two removals are added by kind', () => {
  expect(sumCounts({ files: 1, jobs: 2 }, { jobs: 3, usage: 1 })).toEqual({ files: 1, jobs: 5, usage: 1 });
});
