import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';
import type { Clock } from './clock.js';

/** What a log is written to. */
export interface LogTarget {
  readonly fd: number;
  /** A write may take its time, so another thread must do it, which costs more than one that is taken or refused at once. */
  readonly mayBlock: boolean;
}

export interface FlushableStream extends DestinationStream {
  flushSync(): void;
}

/** What a pipe takes as one piece, bytes. */
const maxPieceBytes = 4096;
/** A busy process writes its records together, at a fraction of the cost; nobody reads a log faster than this. */
const gatherMs = 20;
const maxWaitingBytes = 1024 * 1024;
/** When a pipe that was full is tried again. */
const retryMs = 100;
/** At the end, a reader that has fallen behind gets a second to make room. */
const flushRetryMs = 10;
const maxFlushTries = 100;

/**
 * Owns the records that are not written out yet. It never blocks before its end: a log that nobody reads must not stop the
 * service. What does not fit into 1 MiB meanwhile is dropped.
 */
export class LogOutput implements FlushableStream {
  readonly #target: LogTarget;
  readonly #clock: Clock;
  readonly #onLost: () => void;
  /** Held back for a moment, as much as goes into one piece. */
  #held = '';
  #heldBytes = 0;
  /** In their order; what is being written is the first. */
  #pieces: Buffer[] = [];
  #waitingBytes = 0;
  /** Once it has been flushed, only the next flush writes. */
  #state: 'idle' | 'writing' | 'waiting' | 'flushed' = 'idle';

  /** `onLost` hears of each piece that was dropped or could not be written. */
  constructor(target: LogTarget, clock: Clock, onLost: () => void) {
    this.#target = target;
    this.#clock = clock;
    this.#onLost = onLost;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#heldBytes + bytes > maxPieceBytes) this.#release();
    if (this.#held === '') this.#clock.after(gatherMs, () => this.#release());
    this.#held += line;
    this.#heldBytes += bytes;
  }

  /** For the last moment before an exit: returns when all is out, or when it is clear that nobody takes it. */
  flushSync(): void {
    const isFirstUnderWay = this.#state === 'writing';
    this.#state = 'flushed';
    this.#release();
    const pieces = this.#pieces.splice(0).slice(isFirstUnderWay ? 1 : 0);
    this.#waitingBytes = 0;
    writeOut(this.#target.fd, pieces);
  }

  #release(): void {
    if (this.#held === '') return;
    const piece = Buffer.from(this.#held);
    this.#held = '';
    this.#heldBytes = 0;
    if (this.#waitingBytes + piece.length > maxWaitingBytes) return this.#onLost();
    this.#pieces.push(piece);
    this.#waitingBytes += piece.length;
    if (this.#state === 'idle') this.#writeFirst();
  }

  #writeFirst(): void {
    if (this.#state === 'flushed') return;
    const [piece] = this.#pieces;
    this.#state = piece === undefined ? 'idle' : 'writing';
    if (piece === undefined) return;
    const { fd, mayBlock } = this.#target;
    if (mayBlock) write(fd, piece, (error, bytes) => this.#written(piece, error, bytes));
    else this.#written(piece, ...writeAtOnce(fd, piece));
  }

  #written(piece: Buffer, error: NodeJS.ErrnoException | null, bytes: number): void {
    if (this.#state === 'flushed') return;
    if (error !== null && isFull(error)) {
      this.#state = 'waiting';
      this.#clock.after(retryMs, () => this.#writeFirst());
      return;
    }
    if (error !== null) this.#onLost();
    const rest = piece.subarray(error === null ? bytes : piece.length);
    this.#waitingBytes -= piece.length - rest.length;
    this.#pieces.splice(0, 1, ...(rest.length > 0 ? [rest] : []));
    this.#writeFirst();
  }
}

/** For a process that is about to exit: every record is out before the next one is written. */
export function blockingOutput(): FlushableStream {
  const { fd } = openForLog(1);
  return { write: (line) => writeOut(fd, [Buffer.from(line)]), flushSync: () => {} };
}

/**
 * What to write to instead of this open file, so that no write blocks. Whether a pipe blocks is one flag for all processes
 * that have inherited it, and a Node process that ends sets it back: a pipe of one's own has a flag of its own.
 */
export function openForLog(fd: number): LogTarget {
  try {
    if (!fstatSync(fd).isFIFO()) return { fd, mayBlock: true };
    return { fd: openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK), mayBlock: false };
  } catch {
    return { fd, mayBlock: true }; // somebody else's pipe, or nobody's any more
  }
}

function writeAtOnce(fd: number, piece: Buffer): [error: NodeJS.ErrnoException | null, bytes: number] {
  try {
    return [null, writeSync(fd, piece)];
  } catch (error) {
    return [error as NodeJS.ErrnoException, 0];
  }
}

/** Returns when all is out, or when it is clear that nobody takes it. Piece by piece: a larger one could be torn apart. */
function writeOut(fd: number, pieces: readonly Buffer[]): void {
  let triesLeft = maxFlushTries;
  for (const piece of pieces) {
    for (let rest = piece; rest.length > 0; ) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
      } catch (error) {
        if (!isFull(error as NodeJS.ErrnoException) || triesLeft-- === 0) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, flushRetryMs);
      }
    }
  }
}

function isFull({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EAGAIN';
}
