import { StringDecoder } from 'node:string_decoder';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { cliError, RelayError } from '../../shared/errors.js';
import { Inbox } from '../../shared/inbox.js';
import type { Decoder, Exit, TurnEvent } from './adapter.js';
import type { CliObserver } from './cli-observer.js';
import { LineTooLong } from './lines.js';
import type { ExitStatus, ProcessTree } from './process-tree.js';
import { Tail } from './tail.js';
import type { Watchdog } from './watchdog.js';

/** After the program has exited, its stdout may be held open by a child: this long without a byte, and it counts as read. */
const quietAfterExitMs = 100;
/** Events decoded and not yet taken; then the program's stdout is left unread, and the program waits. */
const maxWaitingEvents = 4;
/** A longer piece of text is cut up, so that what waits at each hop is bounded in bytes too. */
const maxDeltaLength = 16 * 1024;
const stderrTailBytes = 4096;

interface OpenTurn {
  readonly events: Inbox<TurnEvent>;
  readonly watchdog: Watchdog;
}

type State =
  | { readonly name: 'idle' }
  | { readonly name: 'busy'; readonly turn: OpenTurn }
  | { readonly name: 'over'; readonly exit: Exit };

/** Owns what one program writes: decodes it for the turn that is open, and knows when all of it has been read. */
export class CliOutput {
  readonly #child: ProcessTree['child'];
  readonly #decoder: Decoder;
  readonly #clock: Clock;
  readonly #observer: CliObserver;
  readonly #characters = new StringDecoder('utf8'); // a character may be cut between two reads
  readonly #stderr = new Tail(stderrTailBytes);
  #state: State = { name: 'idle' };
  #status: ExitStatus | null = null;
  #firstMs: number | null = null;
  #stopQuietTimer: StopTimer = () => {};

  constructor(child: ProcessTree['child'], decoder: Decoder, clock: Clock, observer: CliObserver) {
    this.#child = child;
    this.#decoder = decoder;
    this.#clock = clock;
    this.#observer = observer;
    this.#listen();
  }

  /** Whether the program can answer no more, as far as is known: it has exited. */
  get isOver(): boolean {
    return this.#status !== null || this.#state.name === 'over';
  }

  /** When the first byte was read, monotonic; null before that. */
  get firstMs(): number | null {
    return this.#firstMs;
  }

  /** What the program writes from here on belongs to this turn. */
  open(watchdog: Watchdog): Inbox<TurnEvent> {
    const turn: OpenTurn = { events: new Inbox(maxWaitingEvents, () => this.#flow(turn)), watchdog };
    if (this.#state.name === 'over') this.#finish(turn, this.#state.exit);
    else this.#state = { name: 'busy', turn };
    this.#read();
    return turn.events;
  }

  /** The turn is over; what still comes belongs to nobody. */
  close(): void {
    if (this.#state.name !== 'busy') return;
    this.#state = { name: 'idle' };
    this.#child.stdout.resume();
  }

  #listen(): void {
    const { stdin, stderr } = this.#child;
    stdin.on('error', () => {}); // EPIPE: the program reads no more; how it exits tells whether that was right
    stderr.on('data', (chunk: Buffer) => {
      this.#observer.output('stderr', chunk.length);
      this.#stderr.add(chunk);
    });
    this.#child.once('close', () => this.#end());
    this.#child.once('exit', (code, signal) => {
      this.#status = { code, signal };
      this.#awaitQuiet();
    });
  }

  /** From the first turn on: what a program writes while it waits for its first prompt belongs to that turn. */
  #read(): void {
    const { stdout } = this.#child;
    if (stdout.listenerCount('data') > 0) return;
    stdout.on('data', (chunk: Buffer) => {
      this.#firstMs ??= this.#clock.monotonicMs();
      this.#observer.output('stdout', chunk.length);
      this.#decode(this.#characters.write(chunk));
    });
  }

  #decode(text: string): void {
    this.#awaitQuiet();
    if (text === '' || this.#state.name === 'over') return;
    const turn = this.#state.name === 'busy' ? this.#state.turn : null;
    try {
      for (const event of this.#decoder.read(text)) if (turn !== null) deliver(event, turn);
    } catch (error) {
      turn?.events.fail(error instanceof LineTooLong ? cliError('output_too_large', error.message) : error);
    }
    if (turn === null) return;
    if (turn.events.over)
      turn.watchdog.rest(); // what is silent now is the reader
    else if (this.#decoder.hasBegun) turn.watchdog.heard();
    if (turn.events.full) this.#hold(turn);
  }

  #hold({ watchdog }: OpenTurn): void {
    this.#stopQuietTimer();
    watchdog.rest();
    this.#child.stdout.pause();
  }

  #flow({ events, watchdog }: OpenTurn): void {
    if (!this.#child.stdout.isPaused() || events.full) return;
    this.#child.stdout.resume();
    if (!events.over) watchdog.heard();
    this.#awaitQuiet();
  }

  /** Once the program has exited: its answer is complete when stdout closes or stays quiet. */
  #awaitQuiet(): void {
    if (this.#status === null || this.#state.name === 'over') return;
    this.#stopQuietTimer();
    if (!this.#child.stdout.isPaused()) this.#stopQuietTimer = this.#clock.after(quietAfterExitMs, () => this.#end());
  }

  #end(): void {
    if (this.#state.name === 'over' || this.#status === null) return;
    this.#decode(this.#characters.end());
    this.#stopQuietTimer();
    const exit = { ...this.#status, stderr: this.#stderr.toString() };
    if (this.#state.name === 'busy') this.#finish(this.#state.turn, exit);
    this.#state = { name: 'over', exit };
  }

  #finish(turn: OpenTurn, exit: Exit): void {
    const { events, watchdog } = turn;
    watchdog.rest();
    // setpriv starts the program in its own place; when it can't, it exits with 126 or 127 and says so.
    if ((exit.code === 126 || exit.code === 127) && exit.stderr.startsWith('setpriv: ')) {
      return events.fail(new RelayError('spawn_error', 'the model CLI could not be started: it cannot be executed'));
    }
    for (const event of this.#decoder.exit(exit)) deliver(event, turn);
    events.finish();
  }
}

/** The last event of a turn is the last that its reader gets, whatever the program writes after it. */
function deliver(event: TurnEvent, { events }: OpenTurn): void {
  for (const piece of pieces(event)) events.push(piece);
  if (event.type === 'turn-end' || event.type === 'turn-failed') events.finish();
}

/** The text of a delta in pieces of bounded length; no character is cut in two. */
function* pieces(event: TurnEvent): Generator<TurnEvent> {
  if (event.type !== 'text-delta' || event.text.length <= maxDeltaLength) return yield event;
  for (let from = 0; from < event.text.length; ) {
    const to = from + maxDeltaLength;
    const isCut = /[\ud800-\udbff]/.test(event.text.charAt(to - 1));
    const text = event.text.slice(from, isCut ? to - 1 : to);
    yield { type: 'text-delta', text };
    from += text.length;
  }
}
