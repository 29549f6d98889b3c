import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import treeKill from 'tree-kill';
import { type Clock, delay } from '../../../shared/clock.js';

const limitMs = 200;

/** Signals a process and its descendants, children first. Resolves when that is done, or after a short time. */
export type KillTree = (pid: number, signal: 'SIGTERM') => Promise<void>;

/** tree-kill asks `ps` once for each process, so it is for small trees. Without `ps` nothing is signalled. */
export function createKillTree(hasPs: boolean, clock: Clock): KillTree {
  if (!hasPs) return async () => {};
  return async (pid, signal) => {
    const done = new Promise<void>((resolve) => survivingPs(() => treeKill(pid, signal, () => resolve()), resolve));
    await Promise.race([done, delay(clock, limitMs)]);
  };
}

/**
 * tree-kill expects that `ps` can be started and says something: where not, it throws, or an `error` is heard by nobody.
 * Either would end this process. What its listeners start is guarded in its turn.
 */
function survivingPs(action: () => void, onFault: () => void): void {
  const guard = (message: unknown) => {
    const { process: child } = message as { readonly process: ChildProcess };
    const emit: (...event: [string, ...unknown[]]) => boolean = child.emit.bind(child);
    child.on('error', onFault);
    child.emit = (...event: [string, ...unknown[]]) => {
      survivingPs(() => emit(...event), onFault);
      return true;
    };
  };
  subscribe('child_process', guard);
  try {
    action();
  } catch {
    onFault();
  } finally {
    unsubscribe('child_process', guard);
  }
}
