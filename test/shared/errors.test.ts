import { errorBody } from '../../src/shared/api/error.js';
import {
  Cancelled,
  cliError,
  cliReasons,
  errorCodes,
  httpStatusOf,
  invalid,
  RelayError,
  toRelayError,
} from '../../src/shared/errors.js';
import { outcomes } from '../../src/shared/job.js';

describe('the errors', () => {
  it('have the statuses of the contract', () => {
    expect(httpStatusOf).toEqual({
      validation_error: 400,
      unauthorized: 401,
      forbidden: 403,
      not_found: 404,
      method_not_allowed: 405,
      payload_too_large: 413,
      rate_limited: 429,
      concurrency_limited: 429,
      cli_error: 500,
      spawn_error: 500,
      internal_error: 500,
      shutting_down: 503,
      queue_timeout: 504,
      timeout: 504,
    });
  });

  it('are the codes that an error body may carry, and no others', () => {
    expect(errorBody.shape.error.options).toEqual(errorCodes);
  });

  it('have a code for every way a job can fail, but for a caller who has gone', () => {
    const failed = outcomes.filter((outcome) => outcome !== 'ok' && outcome !== 'cancelled');
    expect(errorCodes).toEqual(expect.arrayContaining(failed));
  });

  it.each(cliReasons)('say in the details why a model CLI failed: %s', (reason) => {
    expect(cliError(reason, 'no luck')).toMatchObject({
      code: 'cli_error',
      message: 'no luck',
      details: [{ path: 'reason', message: reason }],
    });
  });

  it('say where a request is wrong', () => {
    expect(invalid('prompt', 'must be sent')).toMatchObject({
      code: 'validation_error',
      message: 'prompt: must be sent',
      details: [{ path: 'prompt', message: 'must be sent' }],
    });
  });
});

describe('what a client may know of a thrown value', () => {
  it('is a RelayError as it is', () => {
    const error = new RelayError('timeout', 'too long');
    expect(toRelayError(error)).toBe(error);
  });

  it.each([[new Error('secret')], [new Cancelled('secret')], ['secret'], [undefined], [null], [{ code: 'timeout' }]])(
    'is internal_error and nothing else for %p',
    (thrown) => {
      const { code, message, details, retryAfterSeconds } = toRelayError(thrown);
      expect([code, message, details, retryAfterSeconds]).toEqual([
        'internal_error',
        'internal error',
        undefined,
        undefined,
      ]);
    },
  );
});
