import { join } from 'node:path';

const slowFolders = ['system', 'faults', 'fleet', 'sdks', 'console'].map((name) => join(__dirname, '..', name, '/'));

/**
 * In CI a failed test of the running service runs once more, and its first failure is printed: limits of time that hold on a quiet
 * machine may be missed on a busy one. At a desk every failure counts at once.
 */
const { testPath = '' } = expect.getState();
const isSystemTest = slowFolders.some((folder) => testPath.startsWith(folder));
if (process.env.CI === 'true' && isSystemTest) jest.retryTimes(1, { logErrorsBeforeRetry: true });
