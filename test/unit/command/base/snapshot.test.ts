import { totalsChange, totalsOf } from '../../../../src/command/base/snapshot.js';

const counted = {
  ...{ requests: 7, jobs: 7, failed_jobs: 2, cancelled_jobs: 1, refused: 5 },
  ...{ output_tokens: 1500, first_deltas: 4, first_delta_seconds: 0.5 },
};

const totals = {
  ...{ requests: 7, jobs: 7, failed: 2, cancelled: 1, refused: 5 },
  ...{ tokensOut: 1500, firsts: 4, firstSeconds: 0.5 },
};

describe('The totals of a service', () => {
  it('have the names of the JSON output of the command', () => {
    expect(totalsOf(counted)).toEqual(totals);
  });

  it('show the difference between two snapshots', () => {
    const later = { ...totals, requests: 12, tokensOut: 1600 };
    expect(totalsChange(totals, later, 2)).toMatchObject({ seconds: 2, requests: 5, tokensOut: 100, jobs: 0 });
    expect(totalsChange(null, later, 2)).toMatchObject({ requests: 12 });
  });
});
