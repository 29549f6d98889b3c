import type { ChildProcess } from 'node:child_process';
import treeKill from 'tree-kill';
import { type Clock, delay } from '../../../shared/clock.js';
import { closingFailed, watchingChildren } from '../../../shared/node-internals/spawned-children.js';

const limitMs = 200;
/** For so long the numbers that `ps` has listed surely mean the same processes: no machine forks so fast that they come round. */
const validMs = 1000;

/**
 * Signals a process and its descendants, children first. Resolves when that is done, or after a short time. Signals nothing
 * once `isOurs` says no, nor after a second: what `ps` has listed may have gone, and its numbers may be strangers' by then.
 */
export type KillTree = (pid: number, signal: 'SIGTERM', isOurs?: () => boolean) => Promise<void>;

/** tree-kill asks `ps` once for each process, so it is for small trees. Without `ps` nothing is signalled. */
export function createKillTree(hasPs: boolean, clock: Clock): KillTree {
  if (!hasPs) return async () => {};
  return async (pid, signal, isOurs = () => true) => {
    const until = clock.monotonicMs() + validMs;
    const goesOn = () => isOurs() && clock.monotonicMs() < until;
    const done = new Promise<void>((resolve) => {
      guarded(() => treeKill(pid, signal, () => resolve()), goesOn, resolve);
    });
    await Promise.race([done, delay(clock, limitMs)]);
  };
}

/**
 * tree-kill expects that `ps` can be started and says something: where not, it throws, or an `error` is heard by nobody.
 * Either would end this process. What its listeners start is guarded in its turn, and they hear nothing once `goesOn` says no.
 */
function guarded(action: () => void, goesOn: () => boolean, onFault: () => void): void {
  const guard = (child: ChildProcess) => {
    const emit: (...event: [string, ...unknown[]]) => boolean = child.emit.bind(child);
    child.on('error', onFault);
    child.emit = (...event: [string, ...unknown[]]) => {
      if (goesOn()) guarded(() => emit(...event), goesOn, onFault);
      else onFault();
      return true;
    };
  };
  try {
    watchingChildren(() => closingFailed(action), guard);
  } catch {
    onFault();
  }
}
