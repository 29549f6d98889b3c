import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { ConfigFault } from '../../shared/config/config.js';
import type { Instance } from '../../shared/instance.js';
import { folderPrefix, type RuntimeParent } from '../../shared/proc/runtime-directory.js';
import { type FoundProgram, findProgram } from '../cli/find-program.js';
import { type HostTools, tied } from '../cli/process-tree.js';
import { endsWell } from './probe.js';

/** What the primary needs of its host before it can start anything. */

const probeLimitMs = 5000;

export async function findHostTools(searchPath: string): Promise<HostTools> {
  const [setpriv, ps] = await Promise.all([findProgram('setpriv', searchPath), findProgram('ps', searchPath)]);
  return { setpriv: await soundSetpriv(setpriv), hasPs: ps.kind === 'found' };
}

/** One that does what it is for, tried out: busybox has one that does not, and so have older hosts. */
async function soundSetpriv(found: FoundProgram): Promise<string | null> {
  if (found.kind !== 'found') return null;
  const { path } = found;
  return (await endsWell(...tied(path, path, ['--version']), probeLimitMs)) ? path : null;
}

/** `systemd-notify`; null where it is not installed. */
export async function findNotifier(searchPath: string): Promise<string | null> {
  const notifier = await findProgram('systemd-notify', searchPath);
  return notifier.kind === 'found' ? notifier.path : null;
}

/** A folder of our own, mode 0700; its name tells whose it is, should it be left behind. Throws a ConfigFault. */
export async function makeRuntimeDirectory({ variable, path }: RuntimeParent, owner: Instance): Promise<string> {
  try {
    return await mkdtemp(join(path, folderPrefix(owner)));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigFault([`${variable}: cannot create a folder in ${path} (${code})`]);
  }
}

export function removeRuntimeDirectory(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true });
}

/**
 * The port that stands for port 0, picked once: the cluster shares a listener between the workers that ask for the same
 * number, and a worker that is told 0 would not share with one that is told what 0 has become.
 */
export function findFreePort(host: string): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(0)); // the workers meet the same fault, and it is theirs to tell
    server.listen({ host, port: 0 }, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
