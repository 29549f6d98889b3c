import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from './folder.js';

/** A real pipe, of which only what a test takes out makes room. */
export interface Pipe extends AsyncDisposable {
  /** The end that is written to. As a shell gives it, it blocks; as a process of ours makes it, it doesn't. */
  open(blocks: 'blocking' | 'non-blocking'): number;
  /** Leaves no room for a single byte. */
  fill(): void;
  /** All that it holds. */
  read(): string;
  /** Its reader goes. */
  leave(): void;
}

export async function createPipe(): Promise<Pipe> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'pipe');
  await promisify(execFile)('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK); // first: a writer wants one to be there
  const fds = new Set([reader]);
  const open = (flags: number) => {
    const fd = openSync(path, constants.O_WRONLY | flags);
    fds.add(fd);
    return fd;
  };
  const own = open(constants.O_NONBLOCK);
  const close = (fd: number) => fds.delete(fd) && closeSync(fd);
  return {
    open: (blocks) => open(blocks === 'blocking' ? 0 : constants.O_NONBLOCK),
    fill: () => {
      for (const size of [4096, 1]) while (tried(() => writeSync(own, 'x'.repeat(size))) > 0);
    },
    read: () => {
      const bytes = Buffer.alloc(1024 * 1024);
      let length = 0;
      for (let more = 1; more > 0; length += more)
        more = tried(() => readSync(reader, bytes, length, bytes.length - length, null));
      return bytes.toString('utf8', 0, length);
    },
    leave: () => close(reader),
    [Symbol.asyncDispose]: async () => {
      for (const fd of fds) close(fd);
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** 0 where it would have to wait. */
function tried(act: () => number): number {
  try {
    return act();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
    throw error;
  }
}
