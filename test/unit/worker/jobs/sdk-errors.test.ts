import { cliError, invalid, RelayError } from '../../../../src/shared/errors.js';
import { sdkErrorOf, sdkMessageOf } from '../../../../src/worker/jobs/sdk-errors.js';

describe('An error for SDKs', () => {
  it.each([
    ['overloaded', 'overloaded', 503, 'overloaded'],
    ['quota', 'quota', 429, 'insufficient_quota'],
    ['prompt_too_long', 'request', 400, 'context_length_exceeded'],
    ['request_refused', 'request', 400, 'request_refused'],
    ['model_unknown', 'not_found', 404, 'model_not_found'],
    ['crashed', 'server', 500, 'crashed'],
  ] as const)('has a kind, a status and a code that a client can react to: %s', (reason, kind, status, code) => {
    expect(sdkErrorOf(cliError(reason, 'why'))).toMatchObject({ kind, status, code });
  });

  it('has the kind of a used quota if a budget is used up', () => {
    const error = new RelayError('concurrency_limited', 'why', { reason: 'budget' });
    expect(sdkErrorOf(error)).toMatchObject({ kind: 'quota', status: 429, code: 'insufficient_quota' });
  });

  it('distinguishes an unknown model from a missing one', () => {
    const [unknown, none] = [invalid('model', 'must be one of eliza'), invalid('model', 'must be sent')];
    expect(sdkErrorOf(unknown)).toMatchObject({ kind: 'not_found', status: 404, code: 'model_not_found' });
    expect(sdkErrorOf(none)).toMatchObject({ kind: 'request', status: 400, code: 'validation_error' });
  });

  it('has the kind and the status of its code if it has no reason', () => {
    const timeout = new RelayError('timeout', 'why');
    expect(sdkErrorOf(timeout)).toMatchObject({ kind: 'timeout', status: 504, code: 'timeout' });
  });

  it('begins with words by which clients recognise a prompt that is too long', () => {
    expect(sdkMessageOf(cliError('prompt_too_long', 'why'))).toMatch(/^the input exceeds the context window.*: why$/);
    expect(sdkMessageOf(cliError('crashed', 'why'))).toBe('why');
  });
});
