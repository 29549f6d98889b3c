import { createHook } from 'node:async_hooks';
import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/** Calls `action`, and `onChild` for each child process that it starts, before the child can emit an event. */
export function watchingChildren<T>(action: () => T, onChild: (child: ChildProcess) => void): T {
  const notify = (message: unknown) => onChild((message as { readonly process: ChildProcess }).process);
  subscribe('child_process', notify);
  try {
    return action();
  } finally {
    unsubscribe('child_process', notify);
  }
}

/** Pipes that Node has opened for one child. */
interface Opened {
  readonly child: ChildProcess;
  readonly pipes: { close(): void }[];
}

/**
 * Calls `start`, which may start processes, and closes leaked pipes. If no file descriptor is left (EMFILE, ENFILE),
 * Node reports the failure but does not close the pipes of the child, three sockets each time.
 */
export function closingFailed<T>(start: () => T): T {
  const opened: Opened[] = [];
  const hook = createHook({
    init: (_id, type, _trigger, resource) => {
      if (type === 'PIPEWRAP') opened.at(-1)?.pipes.push(resource as { close(): void });
    },
  });
  hook.enable();
  try {
    return watchingChildren(start, (child) => void opened.push({ child, pipes: [] }));
  } finally {
    hook.disable();
    for (const { child, pipes } of opened) if (child.stdio === undefined) for (const pipe of pipes) pipe.close();
  }
}
