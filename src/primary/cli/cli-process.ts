import { StringDecoder } from 'node:string_decoder';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { cliError, RelayError } from '../../shared/errors.js';
import { Inbox } from '../../shared/inbox.js';
import type { TextDelta } from '../../shared/job.js';
import type { Decoder, Dialect, Exit, Turn, TurnEnd, TurnEvent } from './adapter.js';
import type { ExitStatus, ProcessTree } from './process-tree.js';
import { Tail } from './tail.js';

export interface CliLimits {
  /** Longest answer, bytes of text. */
  readonly maxOutputBytes: number;
  /** Between SIGTERM and SIGKILL, milliseconds. */
  readonly graceMs: number;
}

/** A job's tree must be gone within a second of its end, so a program that ignores SIGTERM gets no longer than this. */
const maxJobGraceMs = 400;
/** After the program has exited, its stdout may be held open by a child: this long without a byte, and it counts as read. */
const quietAfterExitMs = 100;
/** Events decoded and not yet taken; then the program's stdout is left unread, and the program waits. */
const maxWaitingEvents = 16;
const stderrTailBytes = 4096;

type State =
  | { readonly name: 'idle' }
  | { readonly name: 'busy'; readonly events: Inbox<TurnEvent> }
  | { readonly name: 'exited'; readonly exit: Exit };

/** Owns one running model CLI: gives it turns, one at a time, and ends it with everything it started. */
export class CliProcess implements AsyncDisposable {
  readonly #tree: ProcessTree;
  readonly #dialect: Dialect;
  readonly #decoder: Decoder;
  readonly #limits: CliLimits;
  readonly #clock: Clock;
  readonly #onEnded: () => Promise<void>;
  readonly #characters = new StringDecoder('utf8'); // a character may be cut between two reads
  readonly #stderr = new Tail(stderrTailBytes);
  #state: State = { name: 'idle' };
  #status: ExitStatus | null = null;
  #stopQuietTimer: StopTimer = () => {};
  #ending: Promise<void> | undefined;

  /** `onEnded` is awaited after the last process of the tree has gone. */
  constructor(tree: ProcessTree, dialect: Dialect, limits: CliLimits, clock: Clock, onEnded: () => Promise<void>) {
    this.#tree = tree;
    this.#dialect = dialect;
    this.#decoder = dialect.decoder();
    this.#limits = limits;
    this.#clock = clock;
    this.#onEnded = onEnded;
    this.#listen();
  }

  /**
   * Gives the program one turn; yields its answer, then one end. Throws `cli_error`, `spawn_error`, or the signal's
   * reason; then the tree is already being ended, whether or not the reader goes on reading.
   */
  async *turn(turn: Turn, signal: AbortSignal): AsyncGenerator<TextDelta | TurnEnd> {
    const events = this.#begin();
    const cut = () => {
      events.cut(signal.reason);
      void this.end();
    };
    if (signal.aborted) cut();
    else signal.addEventListener('abort', cut, { once: true });
    try {
      this.#write(turn);
      yield* this.#bounded(events);
    } finally {
      signal.removeEventListener('abort', cut);
      if (this.#state.name === 'busy') this.#state = { name: 'idle' };
    }
  }

  /** Resolves when nothing of it is left. */
  end(): Promise<void> {
    this.#ending ??= this.#tree.end(Math.min(this.#limits.graceMs, maxJobGraceMs)).then(this.#onEnded);
    return this.#ending;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }

  #begin(): Inbox<TurnEvent> {
    const { stdout } = this.#tree.child;
    const events = new Inbox<TurnEvent>(maxWaitingEvents, () => {
      if (!stdout.isPaused() || events.full) return;
      stdout.resume();
      this.#awaitQuiet();
    });
    if (this.#state.name === 'exited') this.#finish(events, this.#state.exit);
    else this.#state = { name: 'busy', events };
    return events;
  }

  #write(turn: Turn): void {
    const { stdin } = this.#tree.child;
    const input = this.#dialect.write(turn);
    stdin.write(input.text);
    if (input.stdin === 'end') stdin.end();
  }

  async *#bounded(events: Inbox<TurnEvent>): AsyncGenerator<TextDelta | TurnEnd> {
    let bytes = 0;
    for await (const event of events) {
      if (event.type === 'turn-failed') throw cliError(event.reason, event.message);
      bytes += Buffer.byteLength(event.text ?? '');
      if (bytes > this.#limits.maxOutputBytes) throw this.#tooLarge();
      yield event;
      if (event.type === 'turn-end') return;
    }
    throw cliError('crashed', 'the model CLI ended without an answer');
  }

  #tooLarge(): RelayError {
    return cliError('output_too_large', `the answer is longer than ${this.#limits.maxOutputBytes} bytes`);
  }

  #listen(): void {
    const { child } = this.#tree;
    child.stdin.on('error', () => {}); // EPIPE: the program reads no more; how it exits tells whether that was right
    child.stderr.on('data', (chunk: Buffer) => this.#stderr.add(chunk));
    child.stdout.on('data', (chunk: Buffer) => this.#decode(this.#characters.write(chunk)));
    child.once('close', () => this.#exited());
    child.once('exit', (code, signal) => {
      this.#status = { code, signal };
      this.#awaitQuiet();
    });
  }

  #decode(text: string): void {
    this.#awaitQuiet();
    if (text === '' || this.#state.name === 'exited') return;
    const events = this.#state.name === 'busy' ? this.#state.events : null;
    try {
      for (const event of this.#decoder.read(text)) events?.push(event);
    } catch (error) {
      events?.fail(error instanceof RangeError ? this.#tooLarge() : error);
    }
    if (events?.full) this.#pause();
  }

  #pause(): void {
    this.#stopQuietTimer();
    this.#tree.child.stdout.pause();
  }

  /** Once the program has exited: its answer is complete when stdout closes or stays quiet. */
  #awaitQuiet(): void {
    if (this.#status === null || this.#state.name === 'exited') return;
    this.#stopQuietTimer();
    if (!this.#tree.child.stdout.isPaused()) {
      this.#stopQuietTimer = this.#clock.after(quietAfterExitMs, () => this.#exited());
    }
  }

  #exited(): void {
    this.#stopQuietTimer();
    if (this.#state.name === 'exited' || this.#status === null) return;
    this.#decode(this.#characters.end());
    const exit = { ...this.#status, stderr: this.#stderr.toString() };
    if (this.#state.name === 'busy') this.#finish(this.#state.events, exit);
    this.#stopQuietTimer();
    this.#state = { name: 'exited', exit };
  }

  #finish(events: Inbox<TurnEvent>, exit: Exit): void {
    // setpriv starts the program in its own place; when it can't, it exits with 126 or 127 and says so.
    if ((exit.code === 126 || exit.code === 127) && exit.stderr.startsWith('setpriv: ')) {
      return events.fail(new RelayError('spawn_error', 'the model CLI could not be started: it cannot be executed'));
    }
    for (const event of this.#decoder.exit(exit)) events.push(event);
    events.finish();
  }
}
