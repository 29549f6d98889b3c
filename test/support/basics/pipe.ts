import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from './folder.js';

/** Real pipe that only the test reads. */
export interface Pipe extends AsyncDisposable {
  /** Opens the writing end. Shells pass blocking pipes, Node creates non-blocking ones. */
  open(blocks: 'blocking' | 'non-blocking'): number;
  /** Fills the pipe to its last byte. */
  fill(): void;
  /** Reads all bytes in the pipe. */
  read(): string;
  /** Closes the reading end. */
  leave(): void;
}

export async function createPipe(): Promise<Pipe> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'pipe');
  await promisify(execFile)('mkfifo', [path]);
  // The reader is first, because opening for writing needs a reader.
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const fds = new Set([reader]);
  const open = (flags: number) => {
    const fd = openSync(path, constants.O_WRONLY | flags);
    fds.add(fd);
    return fd;
  };
  const writer = open(constants.O_NONBLOCK);
  const close = (fd: number) => fds.delete(fd) && closeSync(fd);
  return {
    open: (blocks) => open(blocks === 'blocking' ? 0 : constants.O_NONBLOCK),
    fill: () => {
      for (const size of [4096, 1]) while (tried(() => writeSync(writer, 'x'.repeat(size))) > 0);
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

/** Returns the number of bytes; 0 if the call would block. */
function tried(act: () => number): number {
  try {
    return act();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
    throw error;
  }
}

/** Real Unix stream socket, which journald also gives a service for stdout. */
export interface LogSocket extends AsyncDisposable {
  /** End that a service writes to. */
  readonly writer: Socket;
  /** Stops the reader, and fills the socket to its last byte. */
  fill(): Promise<void>;
  /** Returns the bytes since the last call, and resumes the reader after a `fill`. */
  read(): string;
  /** Closes the reader's end. */
  leave(): void;
}

export async function createLogSocket(): Promise<LogSocket> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'log');
  const server = createServer({ highWaterMark: 1 }).listen(path);
  await once(server, 'listening');
  const writer = connect(path).pause(); // paused, so that this process does not watch it
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
      await fillUp(writer); // a paused reader takes one more chunk
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

/**
 * Fills with MSG_DONTWAIT (0x40), from Perl: unlike O_NONBLOCK, this does not affect the other writers of the socket.
 */
async function fillUp(writer: Socket): Promise<void> {
  const program = 'for my $size (4096, 1) { 1 while defined send(STDOUT, "x" x $size, 0x40) }';
  await once(spawn('perl', ['-e', program], { stdio: ['ignore', writer, 'inherit'] }), 'exit');
}
