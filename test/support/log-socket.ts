import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { temporaryFolder } from './folder.js';

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
