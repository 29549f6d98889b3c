import { StringDecoder } from 'node:string_decoder';
import { type Clock, endOfLoopTurn, type StopTimer } from '../../../shared/clock.js';
import { terminalSequences } from '../adapters/common/lines.js';
import type { Exit } from '../contract/adapter.js';
import type { CliObserver } from '../contract/observer.js';
import type { Child, ExitStatus } from '../terminate/containment.js';
import type { Redactor } from './redactor.js';

/** After the program has exited, a child may hold its stdout open: after this long without a byte, it counts as read. */
const quietAfterExitMs = 100;
/** Characters that are reported. */
const maxStderrLength = 4096;
/** As much again is stored before them, for a secret that begins there. */
const storedStderrBytes = 2 * maxStderrLength;

export interface OutputListener {
  /** The next piece of stdout. No character is cut in two. */
  text(text: string): void;
  /** The program has exited and its stdout has been read. Called once. */
  end(exit: Exit): void;
}

/** Owns what one program writes: reads it while it is wanted, and knows when all of it has been read. */
export class ProgramOutput {
  readonly #child: Child;
  readonly #clock: Clock;
  readonly #observer: CliObserver;
  readonly #listener: OutputListener;
  readonly #redactor: Pick<Redactor, 'redact'>;
  readonly #characters = new StringDecoder('utf8'); // a character may be cut between two reads
  #stderr = Buffer.alloc(0);
  #status: ExitStatus | null = null;
  #isOver = false;
  #firstByteMs: number | null = null;
  #stopQuietTimer: StopTimer = () => {};

  constructor(
    child: Child,
    listener: OutputListener,
    { clock, observer, redactor }: { clock: Clock; observer: CliObserver; redactor: Pick<Redactor, 'redact'> },
  ) {
    this.#child = child;
    this.#listener = listener;
    this.#clock = clock;
    this.#observer = observer;
    this.#redactor = redactor;
    child.stdin.on('error', () => {}); // EPIPE: the program reads no more; how it exits shows whether that was right
    for (const stream of [child.stdout, child.stderr]) stream.on('error', () => {}); // its end comes all the same
    child.stderr.on('data', (chunk: Buffer) => this.#storeStderr(chunk));
    child.once('exit', (code, signal) => {
      this.#status = { code, signal };
      this.#awaitQuiet();
    });
    child.once('close', () => this.#end());
  }

  /** When the first byte was read, monotonic; null before that. */
  get firstByteMs(): number | null {
    return this.#firstByteMs;
  }

  /** Begins or continues to read. What a program writes before its first turn belongs to that turn. */
  read(): void {
    const { stdout } = this.#child;
    if (stdout.listenerCount('data') === 0) stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    else stdout.resume();
    this.#awaitQuiet();
  }

  /** Reads no further, so that the program waits. */
  pause(): void {
    this.#stopQuietTimer();
    this.#child.stdout.pause();
  }

  #take(chunk: Buffer): void {
    this.#firstByteMs ??= this.#clock.monotonicMs();
    this.#observer.output('stdout', chunk.length);
    this.#awaitQuiet();
    this.#emit(this.#characters.write(chunk));
  }

  #emit(text: string): void {
    if (text !== '' && !this.#isOver) this.#listener.text(text);
  }

  #storeStderr(chunk: Buffer): void {
    this.#observer.output('stderr', chunk.length);
    this.#stderr = Buffer.concat([this.#stderr, chunk.subarray(-storedStderrBytes)]).subarray(-storedStderrBytes);
  }

  #awaitQuiet(): void {
    if (this.#status === null || this.#isOver) return;
    this.#stopQuietTimer();
    if (this.#child.stdout.isPaused()) return;
    this.#stopQuietTimer = this.#clock.after(quietAfterExitMs, () => void this.#endIfQuiet());
  }

  /** On a busy host a timer fires before the loop has looked for what was written long ago. */
  async #endIfQuiet(): Promise<void> {
    const stopTimer = this.#stopQuietTimer;
    await endOfLoopTurn();
    if (stopTimer === this.#stopQuietTimer && !this.#child.stdout.isPaused()) this.#end();
  }

  #end(): void {
    if (this.#isOver || this.#status === null) return;
    this.#emit(this.#characters.end());
    this.#stopQuietTimer();
    this.#isOver = true;
    this.#listener.end({ ...this.#status, stderr: this.#reportedStderr() });
  }

  #reportedStderr(): string {
    const text = printable(this.#stderr);
    return this.#redactor.redact(text, Math.max(0, text.length - maxStderrLength));
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
const controls = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/g;

/** Without colours, cursor moves and control characters. What overwrites a line stands on the next. */
export function printable(bytes: Buffer): string {
  return bytes.toString('utf8').replace(terminalSequences, '').replace(/\r\n?/g, '\n').replace(controls, '');
}
