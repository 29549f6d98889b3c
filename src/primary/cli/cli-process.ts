import type { Clock } from '../../shared/clock.js';
import { cliError, type RelayError } from '../../shared/errors.js';
import type { Inbox } from '../../shared/inbox.js';
import type { TextDelta } from '../../shared/job.js';
import type { Dialect, Turn, TurnEnd, TurnEvent } from './adapter.js';
import { type CliObserver, type EndReason, endReasonOf } from './cli-observer.js';
import { CliOutput } from './cli-output.js';
import type { ProcessTree } from './process-tree.js';
import { type SilenceLimits, Watchdog } from './watchdog.js';

export interface CliLimits extends SilenceLimits {
  /** Longest answer, bytes of text. */
  readonly maxOutputBytes: number;
  /** Between SIGTERM and SIGKILL, milliseconds. */
  readonly graceMs: number;
}

/** What a process is given at its start, beside its tree. */
export interface CliProcessParts {
  readonly dialect: Dialect;
  readonly limits: CliLimits;
  readonly clock: Clock;
  readonly observer: CliObserver;
  /** Awaited after the last process of the tree has gone. */
  readonly onEnded: () => Promise<void>;
}

/** What a process needs of its tree. */
export type OwnedTree = Pick<ProcessTree, 'child' | 'exited' | 'hasDied' | 'end'>;

/** A job's tree must be gone within a second of its end, so a program that ignores SIGTERM gets no longer than this. */
const maxJobGraceMs = 400;

type State = 'unused' | 'busy' | 'idle' | 'spent';

/** Owns one running model CLI: gives it turns, one at a time, and ends it with everything it started. */
export class CliProcess {
  readonly startedMs: number;
  readonly #tree: OwnedTree;
  readonly #parts: CliProcessParts;
  readonly #output: CliOutput;
  #state: State = 'unused';
  #ending: Promise<void> | undefined;

  constructor(tree: OwnedTree, parts: CliProcessParts) {
    this.#tree = tree;
    this.#parts = parts;
    this.#output = new CliOutput(tree.child, parts.dialect.decoder(), parts.clock, parts.observer);
    this.startedMs = parts.clock.monotonicMs();
  }

  /** Whether it can be given a turn: it lives, no turn is open, and it goes on reading after the last one. */
  get isWaiting(): boolean {
    return (this.#state === 'unused' || this.#state === 'idle') && !this.#output.isOver && this.#ending === undefined;
  }

  /** As `isWaiting`, and looks: its death may not have been told yet, and who talks to the dead gets no answer. */
  async isReady(): Promise<boolean> {
    return this.isWaiting && !(await this.#tree.hasDied()) && this.isWaiting;
  }

  /** Milliseconds from its start to the first byte that a turn read of it; null before that. */
  get startupMs(): number | null {
    const { firstMs } = this.#output;
    return firstMs === null ? null : firstMs - this.startedMs;
  }

  /** Resolves when the program itself has exited. */
  get exited(): Promise<unknown> {
    return this.#tree.exited;
  }

  /**
   * Gives the program one turn; yields its answer, then one end. Throws `cli_error`, `spawn_error`, `timeout` for a
   * program that stays silent, or the signal's reason; then the tree is already being ended, whether or not the reader
   * goes on reading.
   */
  async *turn(turn: Turn, signal: AbortSignal): AsyncGenerator<TextDelta | TurnEnd> {
    this.#state = 'busy';
    using watchdog = new Watchdog(this.#parts.limits, this.#parts.clock, (reason) => this.#cut(events, reason));
    const events = this.#output.open(watchdog);
    const abort = () => this.#cut(events, signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      signal.throwIfAborted();
      const input = this.#write(turn);
      yield* this.#answer(events, [...(input.rest ?? [])]);
      this.#state = input.stdin === 'end' ? 'spent' : 'idle';
    } finally {
      signal.removeEventListener('abort', abort);
      this.#output.close();
      if (this.#state === 'busy') this.#abandon(signal);
    }
  }

  /** Ends what a slot may wait for, with little grace; resolves when nothing of it is left. */
  end(reason: EndReason): Promise<void> {
    return this.#end(Math.min(this.#parts.limits.graceMs, maxJobGraceMs), reason);
  }

  /** Ends what nobody waits for, with the whole grace. */
  retire(): Promise<void> {
    return this.#end(this.#parts.limits.graceMs, 'retired');
  }

  #end(graceMs: number, reason: EndReason): Promise<void> {
    this.#ending ??= this.#tree.end(graceMs, reason).then(this.#parts.onEnded);
    return this.#ending;
  }

  #cut(events: Inbox<TurnEvent>, reason: unknown): void {
    events.cut(reason);
    void this.end(endReasonOf(reason));
  }

  /** What is left of an unfinished turn would mix with the next. */
  #abandon(signal: AbortSignal): void {
    this.#state = 'spent';
    void this.end(signal.aborted ? endReasonOf(signal.reason) : 'done');
  }

  #write(turn: Turn) {
    const { stdin } = this.#tree.child;
    const input = this.#parts.dialect.write(turn);
    stdin.write(input.text);
    if (input.stdin === 'end') stdin.end();
    return input;
  }

  /** `rest` is written piece by piece, as the program takes it in. */
  async *#answer(events: Inbox<TurnEvent>, rest: string[]): AsyncGenerator<TextDelta | TurnEnd> {
    let bytes = 0;
    for await (const event of events) {
      if (event.type === 'turn-failed') throw cliError(event.reason, event.message);
      if (event.type === 'input-taken') {
        this.#writeNext(rest);
        continue;
      }
      const length = Buffer.byteLength(event.text ?? '');
      bytes = event.type === 'turn-end' && event.text !== null ? length : bytes + length;
      if (bytes > this.#parts.limits.maxOutputBytes) throw this.#tooLarge();
      yield event;
      if (event.type === 'turn-end') return;
    }
    throw cliError('crashed', 'the model CLI ended without an answer');
  }

  #writeNext(rest: string[]): void {
    const text = rest.shift();
    if (text === undefined) throw cliError('other', 'the model CLI asked for more than a turn has');
    this.#tree.child.stdin.write(text);
  }

  #tooLarge(): RelayError {
    return cliError('output_too_large', `the answer is longer than ${this.#parts.limits.maxOutputBytes} bytes`);
  }
}
