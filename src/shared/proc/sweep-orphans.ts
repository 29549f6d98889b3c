import { instanceOf } from '../cookie.js';
import { isAlive, listPids, readEnviron } from './proc-fs.js';

const maxPasses = 50;

/**
 * Kills every process that carries the cookie of a primary that no longer lives; a living neighbour's are not touched.
 * Passes are repeated until one finds nothing, because a process may fork while it is being looked for.
 * Returns how many processes were killed.
 */
export async function sweepOrphans(): Promise<number> {
  const killed = new Set<number>();
  for (let pass = 0; pass < maxPasses; pass++) {
    const found = (await findOrphans()).filter(kill);
    if (found.length === 0) break;
    for (const pid of found) killed.add(pid);
  }
  return killed.size;
}

async function findOrphans(): Promise<number[]> {
  const orphans: number[] = [];
  for (const pid of (await listPids()) ?? []) {
    if (pid !== process.pid && (await isOrphan(pid))) orphans.push(pid);
  }
  return orphans;
}

async function isOrphan(pid: number): Promise<boolean> {
  const environ = await readEnviron(pid);
  if (environ.kind !== 'cookie') return false;
  const instance = instanceOf(environ.cookie);
  return instance !== null && !(await isAlive(instance));
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false; // gone already, or not ours to kill
  }
}
