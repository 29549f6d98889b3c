import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { root } from '../../support/documents/sources.js';

/** Runs the script in a folder where every program succeeds at once, except a command that contains this word. */
async function runWithout(failing: string | null): Promise<{ readonly code: number | null; readonly steps: string[] }> {
  await using folder = await temporaryFolder();
  const stub = `#!/bin/sh\ncase "$0 $*" in *'${failing ?? 'nothing at all'}'*) exit 3 ;; *missing) echo strace ;; esac\n`;
  await copyInto(folder, '.ci/run');
  for (const name of ['npm', 'node', 'apt-get']) await writeProgram(join(folder.path, 'bin', name), stub);
  await writeProgram(join(folder.path, '.ci', 'audit'), stub);
  const PATH = `${join(folder.path, 'bin')}:/usr/bin:/bin`;
  const { status, stdout } = spawnSync(join(folder.path, '.ci', 'run'), { env: { PATH }, encoding: 'utf8' });
  const [, table = ''] = stdout.split('What each step took:\n');
  return { code: status, steps: table.trimEnd().split('\n') };
}

async function copyInto(folder: TemporaryFolder, path: string): Promise<void> {
  await mkdir(join(folder.path, dirname(path)), { recursive: true });
  await copyFile(join(root, path), join(folder.path, path));
}

async function writeProgram(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { mode: 0o755 });
}

function namesOf(steps: readonly string[]): (string | undefined)[] {
  return steps.map((step) => /^ {2}(\S+) +\d+:\d\d/.exec(step)?.[1]);
}

describe('.ci/run', () => {
  const all = ['npm', 'build', 'programs', 'lint', 'licences', 'audit', 'suites'];

  it('prints at its end how long each step took', async () => {
    const { code, steps } = await runWithout(null);
    expect(code).toBe(0);
    expect(namesOf(steps)).toEqual(all);
    expect(steps.filter((step) => step.endsWith('failed'))).toEqual([]);
  });

  it.each([
    ['apt-get install', 'programs'],
    ['run.js all', 'suites'],
    ['npm run lint', 'lint'],
  ])('also prints the durations if a step fails, and ends there: %s', async (failing, expected) => {
    const { code, steps } = await runWithout(failing);
    expect(code).not.toBe(0);
    expect(namesOf(steps)).toEqual(all.slice(0, all.indexOf(expected) + 1));
    expect(namesOf(steps.filter((step) => step.endsWith('failed')))).toEqual([expected]);
  });
});
