/**
 * In CI a failed test runs once more, and its first failure is printed: limits of time that hold on a quiet machine may
 * be missed on a busy one. At a desk every failure counts at once.
 */
if (process.env.CI === 'true') jest.retryTimes(1, { logErrorsBeforeRetry: true });
