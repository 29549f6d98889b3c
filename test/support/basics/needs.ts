import { existsSync } from 'node:fs';

/**
 * Returns `describe` for a suite that needs this program. If missing, the suite is skipped with a message, unless CI is
 * set.
 */
export function describeWith(program: string): jest.Describe {
  if (process.env.CI !== undefined || existsSync(program)) return describe;
  process.stderr.write(`Skipped, because ${program} is not installed: what needs it.\n`);
  return describe.skip;
}
