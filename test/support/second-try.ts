/** Tests of the running service. Those of parts wait for nothing outside, and get no second try. */
const ofService = /\/test\/(service|programs)\//;

/**
 * In CI a failed test of the running service runs once more, and its first failure is printed: limits of time that hold on a quiet
 * machine may be missed on a busy one. At a desk every failure counts at once.
 */
const { testPath = '' } = expect.getState();
// At once: some files end what their tests share in their last one.
if (process.env.CI === 'true' && ofService.test(testPath))
  jest.retryTimes(1, { logErrorsBeforeRetry: true, retryImmediately: true });
