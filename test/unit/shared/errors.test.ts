import { errorBody } from '../../../src/shared/api/error.js';
import {
  cancelled,
  cliError,
  cliReasons,
  errorCodes,
  fromWire,
  httpStatusOf,
  ignoreFailure,
  invalid,
  isCancelled,
  isDefect,
  publicCodes,
  RelayError,
  retryAfter,
  shuttingDown,
  storeUnavailable,
  toRelayError,
  toWire,
  wireError,
} from '../../../src/shared/errors.js';
import { outcomes } from '../../../src/shared/job.js';

describe('The error codes', () => {
  it('have the documented HTTP statuses', () => {
    expect(httpStatusOf).toEqual({
      validation_error: 400,
      unauthorized: 401,
      forbidden: 403,
      not_found: 404,
      method_not_allowed: 405,
      idempotency_in_progress: 409,
      turn_ended: 409,
      payload_too_large: 413,
      idempotency_mismatch: 422,
      rate_limited: 429,
      concurrency_limited: 429,
      cli_error: 500,
      spawn_error: 500,
      internal_error: 500,
      shutting_down: 503,
      store_unavailable: 503,
      wait_too_long: 503,
      queue_timeout: 504,
      timeout: 504,
    });
  });

  it('are the public codes, and `cancelled`, which is never in an error body', () => {
    expect(errorBody.shape.error.options).toEqual(publicCodes);
    expect(errorCodes).toEqual([...publicCodes, 'cancelled']);
    expect(publicCodes).not.toContain('cancelled');
  });

  it('include every failure of a job', () => {
    expect(errorCodes).toEqual(expect.arrayContaining(outcomes.filter((outcome) => outcome !== 'ok')));
  });
});

describe('A RelayError', () => {
  it.each(cliReasons)('carries the reason of a failed model CLI: %s', (reason) => {
    expect(cliError(reason, 'no luck')).toMatchObject({ code: 'cli_error', message: 'no luck', reason });
  });

  it('has the path of the fault in a request', () => {
    expect(invalid('prompt', 'must be sent')).toMatchObject({
      code: 'validation_error',
      message: 'prompt: must be sent',
      details: [{ path: 'prompt', message: 'must be sent' }],
    });
  });

  it('has the retry time after a restart', () => {
    expect(shuttingDown()).toMatchObject({ code: 'shutting_down', retryAfterSeconds: 5 });
    expect(storeUnavailable()).toMatchObject({ code: 'store_unavailable', retryAfterSeconds: 5 });
  });

  it.each([
    [-1, 1],
    [1001, 2],
    [400_000, 300],
  ])('has a retry time of at least 1 s and at most the limit of the cause (%d ms)', (ms, seconds) => {
    expect(retryAfter('queue', ms)).toBe(seconds);
  });

  it('is not a defect', () => {
    expect(isDefect(new RelayError('internal_error', 'known'))).toBe(false);
    expect([new Error('odd'), 'odd', undefined].map(isDefect)).toEqual([true, true, true]);
  });

  it('is the only value that counts as cancelled, with the code `cancelled`', () => {
    expect(isCancelled(cancelled('gone'))).toBe(true);
    const others = [new RelayError('timeout', 'late'), new Error('cancelled'), { code: 'cancelled' }, undefined];
    expect(others.map(isCancelled)).toEqual([false, false, false, false]);
  });
});

describe('The public error for a thrown value', () => {
  it('is the same RelayError', () => {
    const error = new RelayError('timeout', 'too long');
    expect(toRelayError(error)).toBe(error);
  });

  it.each([[new Error('secret')], ['secret'], [undefined], [null], [{ code: 'timeout' }]])(
    'is only internal_error for %p',
    (thrown) => {
      const { code, message, reason, details, retryAfterSeconds } = toRelayError(thrown);
      expect([code, message]).toEqual(['internal_error', 'internal error']);
      expect([reason, details, retryAfterSeconds]).toEqual([undefined, undefined, undefined]);
    },
  );
});

describe('A failure that is ignored', () => {
  it('is no defect', () => {
    expect(() => ignoreFailure(shuttingDown())).not.toThrow();
    expect(() => ignoreFailure(new TypeError('a defect'))).toThrow('a defect');
  });
});

describe('An error sent to another process', () => {
  const errors = [
    new RelayError('timeout', 'too long'),
    cliError('quota', 'used up'),
    invalid('prompt', 'must be sent'),
    shuttingDown(),
    cancelled('the client has disconnected'),
    new RelayError('cli_error', 'all at once', {
      reason: 'auth',
      details: [{ path: 'a', message: 'b' }],
      retryAfterSeconds: 0,
    }),
  ];

  it.each(errors)('arrives unchanged: %s', (error) => {
    const packed: unknown = JSON.parse(JSON.stringify(toWire(error)));
    const arrived = fromWire(wireError.parse(packed));
    expect(arrived).toBeInstanceOf(RelayError);
    expect(toWire(arrived)).toEqual(toWire(error));
    const { code, message, reason, details, retryAfterSeconds } = error;
    expect(arrived).toMatchObject({ code, message, reason, details, retryAfterSeconds });
  });

  it('contains nothing of a defect', () => {
    expect(JSON.parse(JSON.stringify(toWire(new TypeError('secret'))))).toEqual({
      code: 'internal_error',
      message: 'internal error',
    });
  });
});
