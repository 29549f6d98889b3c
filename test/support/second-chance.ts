import { join } from 'node:path';

const systemTests = join(__dirname, '..', 'system');

/**
 * In CI a failed system test runs once more, and its first failure is printed: limits of time that hold on a quiet
 * machine may be missed on a busy one. At a desk every failure counts at once.
 */
const isSystemTest = expect.getState().testPath?.startsWith(systemTests) ?? false;
if (process.env.CI === 'true' && isSystemTest) jest.retryTimes(1, { logErrorsBeforeRetry: true });
