import type { Clock } from '../clock.js';
import { instanceOf } from '../cookie.js';
import { isAlive } from './proc-fs.js';
import { ProcessScanner } from './process-scanner.js';
import { type RuntimeParent, removeLeftDirectories } from './runtime-directory.js';
import { sweep } from './sweep.js';

const limitMs = 5000;

/**
 * Kills every process that carries the cookie of a primary that no longer lives, and removes the folders of such
 * primaries; what is a living neighbour's is not touched. Returns how many processes were killed.
 */
export async function sweepOrphans(clock: Clock, parent: RuntimeParent): Promise<number> {
  const { killed } = await sweep(new ProcessScanner(clock), isOrphaned, clock, limitMs);
  await removeLeftDirectories(parent); // nobody is left who could write there
  return killed;
}

async function isOrphaned(cookie: string): Promise<boolean> {
  const instance = instanceOf(cookie);
  return instance !== null && !(await isAlive(instance));
}
