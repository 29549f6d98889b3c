/** Tests of the running service. Unit tests wait for no other process, and are not repeated. */
const serviceTests = /\/test\/(service|programs)\//;

/**
 * In CI, a failed test of the running service runs once more, and its first failure is printed: a busy machine may miss
 * time limits. Elsewhere every failure counts.
 */
const { testPath = '' } = expect.getState();
// Repeats at once, because the last test of some files ends what the others share.
if (process.env.CI === 'true' && serviceTests.test(testPath))
  jest.retryTimes(1, { logErrorsBeforeRetry: true, retryImmediately: true });
