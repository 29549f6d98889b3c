import { lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { ConfigFault } from '../../shared/config/config.js';

/** Throws a ConfigFault where something else is in the way of the Unix socket. What can't be seen, listening tells. */
export async function checkSocketPath(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found === null || found.isSocket()) return;
  throw new ConfigFault([`MODEL_API_SOCKET: ${path} exists and is not a socket: choose another path`]);
}

/**
 * Removes the socket of a predecessor that was killed. One that still answers is left alone, and one that can't be
 * removed stays: listening then fails. Throws a ConfigFault for anything that is not a socket.
 */
export async function clearStaleSocket(path: string): Promise<void> {
  await checkSocketPath(path); // a plain file refuses connections too
  if (await refusesConnections(path)) await unlink(path).catch(() => {});
}

function refusesConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(false);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}
