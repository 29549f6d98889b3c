import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigFault, type Environment } from '../shared/config/config.js';
import { findProgram } from './cli/find-program.js';
import type { HostTools } from './cli/process-tree.js';

/** What the primary needs of its host before it can start anything. */

export async function findHostTools(searchPath: string): Promise<HostTools> {
  const [setpriv, ps] = await Promise.all([findProgram('setpriv', searchPath), findProgram('ps', searchPath)]);
  return { setpriv: setpriv.kind === 'found' ? setpriv.path : null, hasPs: ps.kind === 'found' };
}

/** `systemd-notify`; null where it is not installed. */
export async function findNotifier(searchPath: string): Promise<string | null> {
  const notifier = await findProgram('systemd-notify', searchPath);
  return notifier.kind === 'found' ? notifier.path : null;
}

/** A folder of our own, mode 0700, under systemd's RuntimeDirectory where there is one. Throws a ConfigFault. */
export async function makeRuntimeDirectory({ RUNTIME_DIRECTORY }: Environment): Promise<string> {
  const parent = RUNTIME_DIRECTORY ?? tmpdir();
  try {
    return await mkdtemp(join(parent, 'prompt-relay-'));
  } catch (error) {
    const variable = RUNTIME_DIRECTORY === undefined ? 'TMPDIR' : 'RUNTIME_DIRECTORY';
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigFault([`${variable}: no folder can be made in ${parent} (${code})`]);
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
