import { join } from 'node:path';

const suites = [
  'agents',
  'claude',
  'console',
  'faults',
  'fleet',
  'monitoring',
  'processes',
  'proxy',
  'sdks',
  'store',
  'system',
  'systemd',
  'terminal',
];
const slowFolders = suites.map((name) => join(__dirname, '..', name, '/'));

/**
 * In CI a failed test of the running service runs once more, and its first failure is printed: limits of time that hold on a quiet
 * machine may be missed on a busy one. Tests of parts, which wait for nothing outside, get no second try. At a desk every failure counts at once.
 */
const { testPath = '' } = expect.getState();
const runsPrograms = slowFolders.some((folder) => testPath.startsWith(folder));
// At once: some files end what their tests share in their last one.
if (process.env.CI === 'true' && runsPrograms)
  jest.retryTimes(1, { logErrorsBeforeRetry: true, retryImmediately: true });
