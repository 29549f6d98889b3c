import { createHook } from 'node:async_hooks';
import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/** What Node has opened for one child. */
interface Opened {
  readonly child: ChildProcess;
  readonly pipes: { close(): void }[];
}

/**
 * Calls `start`, which may start processes. For want of file descriptors (EMFILE, ENFILE) Node tells of the failure at once
 * and forgets the pipes that it had opened for the child, three sockets each time: here they are closed.
 */
export function closingFailed<T>(start: () => T): T {
  const opened: Opened[] = [];
  const onChild = (message: unknown) =>
    void opened.push({ child: (message as Opened & { process: ChildProcess }).process, pipes: [] });
  const hook = createHook({
    init: (_id, type, _trigger, resource) => {
      if (type === 'PIPEWRAP') opened.at(-1)?.pipes.push(resource as { close(): void });
    },
  });
  subscribe('child_process', onChild);
  hook.enable();
  try {
    return start();
  } finally {
    hook.disable();
    unsubscribe('child_process', onChild);
    for (const { child, pipes } of opened) if (child.stdio === undefined) for (const pipe of pipes) pipe.close();
  }
}
