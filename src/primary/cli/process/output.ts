import { StringDecoder } from 'node:string_decoder';
import { type Clock, type StopTimer, yieldToEventLoop } from '../../../shared/clock.js';
import { type Exit, terminalSequences } from '../contract/adapter.js';
import type { CliObserver } from '../contract/observer.js';
import type { Child, ExitStatus } from '../terminate/containment.js';
import type { Redactor } from './redactor.js';

/** A child may keep stdout open after the program has exited. After this time without data, stdout counts as read. */
const quietAfterExitMs = 100;
/** Number of stderr characters to report. */
const maxStderrLength = 4096;
/** Number of stderr bytes to store: twice as many, so that a secret is found that begins before the reported part. */
const storedStderrBytes = 2 * maxStderrLength;

export interface OutputListener {
  /** Receives the next piece of stdout. Characters are never split. */
  text(text: string): void;
  /** Called once, when the program has exited and its stdout was read. */
  end(exit: Exit): void;
}

/** Owns the output of one program: reads it on request, and detects when all of it was read. */
export class ProgramOutput {
  readonly #child: Child;
  readonly #clock: Clock;
  readonly #observer: CliObserver;
  readonly #listener: OutputListener;
  readonly #redactor: Pick<Redactor, 'redact'>;
  readonly #characters = new StringDecoder('utf8'); // joins characters that are split between two reads
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
    child.stdin.on('error', () => {}); // EPIPE: the program has stopped reading; the exit shows if that is an error
    for (const stream of [child.stdout, child.stderr]) stream.on('error', () => {}); // `close` follows in any case
    child.stderr.on('data', (chunk: Buffer) => this.#storeStderr(chunk));
    child.once('exit', (code, signal) => {
      this.#status = { code, signal };
      this.#awaitQuiet();
    });
    child.once('close', () => this.#end());
  }

  /** Time of the first byte, monotonic; null before it. */
  get firstByteMs(): number | null {
    return this.#firstByteMs;
  }

  /** Starts or resumes reading. Output before the first turn belongs to that turn. */
  startReading(): void {
    const { stdout } = this.#child;
    if (stdout.listenerCount('data') === 0) stdout.on('data', (chunk: Buffer) => this.#readChunk(chunk));
    else stdout.resume();
    this.#awaitQuiet();
  }

  /** Stops reading, so that the program blocks in its write. */
  pause(): void {
    this.#stopQuietTimer();
    this.#child.stdout.pause();
  }

  #readChunk(chunk: Buffer): void {
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

  /**
   * Ends the output unless data is waiting. On a busy host, a timer may fire before the event loop has polled for data
   * that arrived earlier.
   */
  async #endIfQuiet(): Promise<void> {
    const stopTimer = this.#stopQuietTimer;
    await yieldToEventLoop();
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

/** Removes colours, cursor movements and control characters. Text that overwrites a line is put on a new line. */
export function printable(bytes: Buffer): string {
  return bytes.toString('utf8').replace(terminalSequences, '').replace(/\r\n?/g, '\n').replace(controls, '');
}
