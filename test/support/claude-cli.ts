import { execFile } from 'node:child_process';
import { access, constants, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isAlive } from './processes.js';

/** The newest on npm when this was written. */
const newest = '2.1.330';

declare global {
  /** Set by the configuration of a suite that runs with another version. */
  var testedClaude: string | undefined;
}

export const claudeVersion = globalThis.testedClaude ?? newest;

/** The package is 235 MB and not under a free licence: beside the project, never a dependency of it. */
const cache = join(__dirname, '..', '..', '..', '.cache', 'claude-code');
const installLimitMs = 300_000;

/** The path of the real claude program, which is installed with npm where it is not there yet. */
export async function installClaude(version = claudeVersion): Promise<string> {
  const folder = join(cache, version);
  const found = await programIn(folder);
  if (found !== null) return found;
  await mkdir(cache, { recursive: true });
  await removeInterrupted();
  const building = await mkdtemp(join(cache, `install-${process.pid}-`));
  try {
    await npmInstall(building, version);
    // Into place in one step, so that what stands there is whole. Whoever was first stays.
    await rename(building, folder).catch(() => {});
  } finally {
    await rm(building, { recursive: true, force: true });
  }
  const installed = await programIn(folder);
  if (installed === null) throw new Error(`npm installed no claude program for this platform in ${folder}`);
  return installed;
}

/** Without install scripts, which some versions of npm refuse: the program is whole in its platform's own package. */
async function npmInstall(folder: string, version: string): Promise<void> {
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  const args = ['install', '--prefix', folder, '--ignore-scripts', ...quiet];
  await promisify(execFile)('npm', [...args, `@anthropic-ai/claude-code@${version}`], {
    cwd: folder,
    timeout: installLimitMs,
  });
}

async function programIn(folder: string): Promise<string | null> {
  const scope = join(folder, 'node_modules', '@anthropic-ai');
  const packages = await readdir(scope).catch(() => []);
  for (const name of packages.filter((each) => each.startsWith('claude-code-'))) {
    const program = join(scope, name, 'claude');
    if (await isExecutable(program)) return program;
  }
  return null;
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** What is left of installations whose process has died. */
async function removeInterrupted(): Promise<void> {
  for (const name of await readdir(cache)) {
    const pid = /^install-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(cache, name), { recursive: true, force: true });
  }
}
