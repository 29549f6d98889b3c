import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/** Where Node tells of every child process in the moment it is made, before it is started. */
const birth = 'child_process';

/**
 * Runs code of others that starts child processes and does not expect that to fail. An `error` that nobody listens to,
 * and what a listener throws, would end this process: `onFault` hears of either instead.
 */
export function guardChildren(action: () => void, onFault: (fault: unknown) => void): void {
  const guard = (message: unknown) => guardChild((message as { readonly process: ChildProcess }).process, onFault);
  subscribe(birth, guard);
  try {
    action();
  } catch (fault) {
    onFault(fault);
  } finally {
    unsubscribe(birth, guard);
  }
}

/** The listeners of a child may start further ones, and are guarded in their turn. */
function guardChild(child: ChildProcess, onFault: (fault: unknown) => void): void {
  const emit: (...event: [string, ...unknown[]]) => boolean = child.emit.bind(child);
  child.on('error', onFault);
  child.emit = (...event: [string, ...unknown[]]) => {
    let wasHeard = true;
    guardChildren(() => {
      wasHeard = emit(...event);
    }, onFault);
    return wasHeard;
  };
}
