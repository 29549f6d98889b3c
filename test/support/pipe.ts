import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
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

/** A real Unix stream socket, as journald gives a service for its stdout. */
export interface LogSocket extends AsyncDisposable {
  /** The end that a service writes to. */
  readonly writer: Socket;
  /** Stops the reader and leaves no room for a single byte. */
  fill(): Promise<void>;
  /** What has arrived since the last call. The reader goes on after a `fill`. */
  read(): string;
  /** The reader closes its end. */
  leave(): void;
}

export async function createLogSocket(): Promise<LogSocket> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'log');
  const server = createServer({ highWaterMark: 1 }).listen(path);
  await once(server, 'listening');
  const writer = connect(path).pause(); // so that this process does not watch it, and can open it as an inherited file
  const [[reader]] = (await Promise.all([once(server, 'connection'), once(writer, 'connect')])) as [[Socket], []];
  let text = '';
  reader.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return {
    writer,
    fill: async () => {
      reader.pause();
      await fillUp(writer);
      await fillUp(writer); // a reader that pauses takes one more chunk
    },
    read: () => {
      reader.resume();
      const arrived = text;
      text = '';
      return arrived;
    },
    leave: () => void reader.destroy(),
    [Symbol.asyncDispose]: async () => {
      writer.destroy();
      reader.destroy();
      server.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Perl has MSG_DONTWAIT (0x40), which leaves the flags alone that all writers share. */
async function fillUp(writer: Socket): Promise<void> {
  const program = 'for my $size (4096, 1) { 1 while defined send(STDOUT, "x" x $size, 0x40) }';
  await once(spawn('perl', ['-e', program], { stdio: ['ignore', writer, 'inherit'] }), 'exit');
}
