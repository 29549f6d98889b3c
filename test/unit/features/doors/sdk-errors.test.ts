import { sdkErrorOf } from '../../../../src/features/doors/sdk-errors.js';
import { RelayError } from '../../../../src/shared/errors.js';

describe('An error for SDKs', () => {
  it('has the kind of a used quota if a budget is used up', () => {
    const error = new RelayError('concurrency_limited', 'why', { reason: 'budget' });
    expect(sdkErrorOf(error)).toMatchObject({ kind: 'quota', status: 429, code: 'insufficient_quota' });
  });
});
