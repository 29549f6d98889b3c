import { createHook } from 'node:async_hooks';
import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/** Calls `action`, and `onChild` for each child process that it starts, before the child can emit anything. */
export function watchingChildren<T>(action: () => T, onChild: (child: ChildProcess) => void): T {
  const notify = (message: unknown) => onChild((message as { readonly process: ChildProcess }).process);
  subscribe('child_process', notify);
  try {
    return action();
  } finally {
    unsubscribe('child_process', notify);
  }
}

/** What Node has opened for one child. */
interface Opened {
  readonly child: ChildProcess;
  readonly pipes: { close(): void }[];
}

/**
 * Calls `start`, which may start processes. When no file descriptor is left (EMFILE, ENFILE), Node reports the failure and
 * forgets the pipes that it had opened for the child, three sockets each time. This function closes them.
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
