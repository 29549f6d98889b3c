import { existsSync } from 'node:fs';

/** `describe` for a suite that needs this program: skipped with a word where it is missing, unless CI is set. */
export function describeWith(program: string): jest.Describe {
  if (process.env.CI !== undefined || existsSync(program)) return describe;
  process.stderr.write(`Skipped, because ${program} is not installed: what needs it.\n`);
  return describe.skip;
}
