import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../support/folder.js';
import { root } from '../support/sources.js';

const suites = [
  'processes',
  'faults',
  'claude',
  'nodes',
  'sdks',
  'agents',
  'console',
  'monitoring',
  'store',
  'terminal',
];
const all = [...suites, 'proxy', 'fleet', 'systemd', 'image'];

/** The script in a folder where every program that it calls succeeds at once, but for what this word is in. */
async function runWithout(failing: string | null): Promise<{ readonly code: number | null; readonly steps: string[] }> {
  await using folder = await temporaryFolder();
  const stub = `#!/bin/sh\ncase "$0 $*" in *'${failing ?? 'nothing at all'}'*) exit 3 ;; esac\n`;
  await copyInto(folder, '.ci/run');
  const script = await readFile(join(root, '.ci', 'run'), 'utf8');
  const needed = [...script.matchAll(/\[([\w-]+)\]=/g)].map(([, name = '']) => name);
  const onPath = ['npm', 'npx', 'node', 'apt-get', 'buildah', 'debootstrap', ...needed];
  for (const name of onPath) await writeProgram(join(folder.path, 'bin', name), stub);
  for (const path of ['.ci/audit', '.ci/production', '.ci/first-minute', 'test/image/run'])
    await writeProgram(join(folder.path, path), stub);
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
  it('prints at its end how long each suite took', async () => {
    const { code, steps } = await runWithout(null);
    expect(code).toBe(0);
    expect(namesOf(steps)).toEqual(expect.arrayContaining(['test', 'lint', ...all]));
    expect(steps.filter((step) => step.endsWith('failed'))).toEqual([]);
  });

  it.each([
    ['faults', ['processes', 'faults']],
    ['nodes/main.js', ['processes', 'faults', 'claude', 'nodes']],
  ])('does so too where one of them fails, and ends there: %s', async (failing, expected) => {
    const { code, steps } = await runWithout(failing);
    expect(code).not.toBe(0);
    const names = namesOf(steps);
    expect(names.filter((name) => all.includes(name ?? '')).toSorted()).toEqual(expected.toSorted());
    expect(namesOf(steps.filter((step) => step.endsWith('failed')))).toEqual([expected.at(-1)]);
  });
});
