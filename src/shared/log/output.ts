import { constants, fstatSync, openSync, write } from 'node:fs';
import { isatty } from 'node:tty';
import type { DestinationStream } from 'pino';
import { type Clock, delay } from '../clock.js';
import { nonBlockingSetter } from '../node-internals/connections.js';

/** `process.stdout.fd` creates a stream, and that sets O_NONBLOCK for every process that shares the file. */
export const stdoutFd = 1;

/** The open file that a log is written to. */
export interface LogTarget {
  readonly fd: number;
  /** Called before each write. */
  readonly setNonBlocking?: () => void;
}

export interface LogDestination extends DestinationStream {
  /** Resolves when all is written, or after a second; false: a write is blocked, and an exit would wait for it. */
  flush(): Promise<boolean>;
}

/** PIPE_BUF: a pipe takes a write of this size whole, so records of different processes do not mix. */
const maxPieceBytes = 4096;
/** Records written within this time share a write, which saves processor time under load. */
const gatherMs = 20;
const maxWaitingBytes = 1024 * 1024;
/** How long to wait before writing again to a pipe or a socket that was full. */
const retryMs = 100;
const flushRetryMs = 10;
const maxFlushTries = 100;
/** A write that another thread has just begun ends in this time, unless it is blocked. */
const maxLastWriteTries = 50;

/** Owns the records not yet written. Never blocks the event loop, and drops what does not fit into 1 MiB. */
export class LogOutput implements LogDestination {
  readonly #target: LogTarget;
  readonly #clock: Clock;
  readonly #onLost: () => void;
  /** Becomes the next piece. */
  #gathered = '';
  #gatheredBytes = 0;
  /** Oldest first. The first may be in a write, or partly written. */
  #pieces: Buffer[] = [];
  #waitingBytes = 0;
  #state: 'idle' | 'writing' | 'full' = 'idle';

  /** Calls `onLost` for each piece that is dropped or cannot be written. */
  constructor(target: LogTarget, clock: Clock, onLost: () => void) {
    this.#target = target;
    this.#clock = clock;
    this.#onLost = onLost;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#gatheredBytes + bytes > maxPieceBytes) this.#addPiece();
    if (this.#gathered === '') this.#clock.after(gatherMs, () => this.#addPiece());
    this.#gathered += line;
    this.#gatheredBytes += bytes;
  }

  async flush(): Promise<boolean> {
    this.#addPiece();
    for (let tries = 0; this.#pieces.length > 0 && tries < maxFlushTries; tries++) {
      this.#retry();
      await delay(this.#clock, flushRetryMs);
      this.#addPiece();
    }
    for (let tries = 0; this.#state === 'writing' && tries < maxLastWriteTries; tries++) {
      await delay(this.#clock, flushRetryMs);
    }
    return this.#state !== 'writing';
  }

  #addPiece(): void {
    if (this.#gathered === '') return;
    const piece = Buffer.from(this.#gathered);
    this.#gathered = '';
    this.#gatheredBytes = 0;
    if (this.#waitingBytes + piece.length > maxWaitingBytes) return this.#onLost();
    this.#pieces.push(piece);
    this.#waitingBytes += piece.length;
    if (this.#state === 'idle') this.#writeFirst();
  }

  #writeFirst(): void {
    const [piece] = this.#pieces;
    this.#state = piece === undefined ? 'idle' : 'writing';
    if (piece === undefined) return;
    this.#target.setNonBlocking?.();
    write(this.#target.fd, piece, (error, bytes) => this.#finish(piece, error, bytes));
  }

  #finish(piece: Buffer, error: NodeJS.ErrnoException | null, bytes: number): void {
    if (error?.code === 'EAGAIN') {
      this.#state = 'full';
      this.#clock.after(retryMs, () => this.#retry());
      return;
    }
    if (error !== null) this.#onLost();
    const rest = piece.subarray(error === null ? bytes : piece.length);
    this.#waitingBytes -= piece.length - rest.length;
    this.#pieces.splice(0, 1, ...(rest.length > 0 ? [rest] : []));
    this.#writeFirst();
  }

  #retry(): void {
    if (this.#state === 'full') this.#writeFirst();
  }
}

/** Whether two descriptors are of one file, pipe, socket or terminal. */
export function areSameFile(one: number, other: number): boolean {
  try {
    const [a, b] = [fstatSync(one), fstatSync(other)];
    return a.dev === b.dev && a.ino === b.ino;
  } catch {
    return false; // one of them is closed
  }
}

/** Prepares this open file for writes that do not block. A regular file stays as it is. */
export function openForLog(fd: number): LogTarget {
  return openAgain(fd) ?? shareStream(fd) ?? { fd };
}

/** O_NONBLOCK belongs to the open file and so to all processes that share it. A pipe or a terminal can be opened again. */
function openAgain(fd: number): LogTarget | null {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    if (!fstatSync(fd).isFIFO() && !isatty(fd)) return null;
    return { fd: openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY) };
  } catch {
    return null; // it belongs to another user, or has no reader
  }
}

/** A socket cannot be opened again. libuv clears its O_NONBLOCK when a worker starts, and Node when one exits. */
function shareStream(fd: number): LogTarget | null {
  try {
    return { fd, setNonBlocking: nonBlockingSetter(fd) };
  } catch {
    return null; // neither a socket nor a pipe
  }
}
