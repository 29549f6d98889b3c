import { withResolvers } from '../../../shared/async.js';
import type { Clock, StopTimer } from '../../../shared/clock.js';
import { cliError, RelayError, retryAfter } from '../../../shared/errors.js';
import {
  type AnswerEvent,
  type Decoder,
  type Exit,
  LineTooLong,
  type TurnEnd,
  type TurnEvent,
  type TurnFailed,
  type TurnInput,
  type TurnWriter,
  type Usage,
  unknownUsage,
  type Waiting,
} from '../contract/adapter.js';
import { couldNotExecute } from './launcher.js';
import type { ProgramOutput } from './output.js';
import type { ProgramInput } from './program-input.js';
import { StepLimit } from './step-limit.js';

export interface TurnLimits {
  /** Longest answer, in bytes: the text, the arguments of calls, and the thoughts that the client gets. */
  readonly maxOutputBytes: number;
  /** Longest silence in a turn, milliseconds; 0: no limit. */
  readonly stallMs: number;
}

/** Resources that a turn has used, however it ended. */
export interface TurnUse {
  /** Usage that the program has reported, at the end of the turn or before it was cut. */
  readonly usage: Usage;
  /** Whether the model may have written more than the program has reported. */
  readonly isCut: boolean;
  /** Bytes that the model has written, including thoughts that the client does not get. */
  readonly outputBytes: number;
  /** Whether the program waits for the results of calls. */
  readonly hasCalls: boolean;
}

/** Receives the answer of a turn. */
export interface TurnSink {
  write(event: AnswerEvent): void;
  /** Whether the client does not want the model's thoughts, which are then not written. */
  readonly hidesThoughts?: boolean;
  /** Receives the name of the model that answers; absent if the client does not need it. */
  model?(name: string): void;
  /** Whether the answer is complete, even if the program still writes. */
  readonly hasEnough: boolean;
  /** Whether the sink accepts no more text until `room` resolves. */
  readonly isFull: boolean;
  room(): Promise<void>;
  /** Receives the usage of the turn once, before the turn ends; not called if the model has not begun. */
  used?(use: TurnUse): void;
  /** Receives each message of the user that the model gets after the answer so far. */
  added?(text: string): void;
  /** Learns that the program waits for the model's API. Returns whether the turn may wait this long. If absent, it may. */
  waits?(waiting: Waiting): boolean;
}

/** Returns the bytes of an event that the model has written. */
function bytesOf(event: AnswerEvent): number {
  if ('text' in event) return Buffer.byteLength(event.text);
  if (event.type === 'thought-end') return Buffer.byteLength(event.redacted ?? event.signature ?? '');
  const isEmpty = event.type === 'call-start' || (event.type === 'passage' && event.passage === null);
  return isEmpty ? 0 : Buffer.byteLength(JSON.stringify(event));
}

/** Message for the model. `resolve` learns whether the model gets it in this turn. */
interface Addition {
  readonly text: string;
  resolve(isAdded: boolean): void;
}

/** Passes new output or a request of the program to its decoder, and returns the events. */
export type Decode = (decoder: Decoder) => Iterable<TurnEvent>;

/** Parts of a CLI process that a turn uses. */
export interface TurnProgram {
  readonly stdin: Pick<ProgramInput, 'write' | 'end'>;
  readonly output: Pick<ProgramOutput, 'startReading' | 'pause'>;
  readonly decoder: Decoder;
  readonly writer?: Pick<TurnWriter, 'add'>;
  /** Called on unexpected output, after which the process must not get another turn. */
  onUnexpectedOutput?(): void;
}

/** Owns one turn until it ends: the input that is not yet written, and the sink for the answer. */
export class OpenTurn implements Disposable {
  readonly #program: TurnProgram;
  readonly #sink: TurnSink;
  readonly #maxOutputBytes: number;
  readonly #silence: SilenceLimit;
  readonly #step: StepLimit;
  #inputLeft: Iterator<string> = [].values();
  #bytes = 0;
  /** Bytes of the thoughts that the client does not get. */
  #hiddenBytes = 0;
  /** Messages without an answer of the program, by their ids. */
  readonly #additions = new Map<string, Addition>();
  #end: TurnEnd | null = null;
  #isOpen = true;
  /** Error to report if time runs out while the program waits to retry; null once the model writes. */
  #waitFailure: RelayError | null = null;
  readonly #clock: Clock;
  readonly #ended = withResolvers<TurnEnd>();
  /** Resolves with the end of the answer; rejects with the reason if the turn fails. */
  readonly ended = this.#ended.promise;

  constructor(program: TurnProgram, sink: TurnSink, limits: TurnLimits, clock: Clock) {
    this.#program = program;
    this.#sink = sink;
    this.#clock = clock;
    this.#maxOutputBytes = limits.maxOutputBytes;
    this.#silence = new SilenceLimit(limits.stallMs, clock, (reason) => this.fail(reason));
    this.#step = new StepLimit(clock, (event) => this.#handleLate(event));
  }

  beginInput({ text, pieces, rest = [], stdin: then }: TurnInput): void {
    const { stdin, output } = this.#program;
    this.#inputLeft = rest[Symbol.iterator]();
    stdin.write(text);
    if (pieces !== undefined) stdin.write(pieces);
    if (then === 'end') stdin.end();
    this.#guarded(() => this.#watchStep());
    output.startReading();
  }

  /** Processes new output or a request of the program, which `decode` passes to the decoder. */
  readOutput(decode: Decode): void {
    const { decoder, onUnexpectedOutput } = this.#program;
    this.#handleAll(() => decode(decoder));
    this.#guarded(() => {
      if (!this.#isOpen && decoder.isMidAnswer) onUnexpectedOutput?.();
      if (this.#isOpen && decoder.hasBegun) this.#silence.reset();
      this.#watchStep();
    });
    if (this.#isOpen && this.#sink.isFull) this.#awaitRoom().catch((error) => this.fail(error));
  }

  /** Handles the exit of the program, after all its output was read. */
  exited(exit: Exit): void {
    if (couldNotExecute(exit)) this.fail(notExecuted(exit));
    this.#handleAll(() => this.#program.decoder.exit(exit));
    if (this.#isOpen) this.fail(cliError('crashed', 'the model CLI ended without an answer'));
  }

  /**
   * Ends an open turn with this reason. If a time limit expires while the program waits to retry, the cause of that
   * wait is reported instead.
   */
  fail(reason: unknown): void {
    const isLate = reason instanceof RelayError && reason.code === 'timeout';
    this.#close();
    this.#ended.reject(isLate && this.#waitFailure !== null ? this.#waitFailure : reason);
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  #watchStep(): void {
    this.#step.set(this.#isOpen ? (this.#program.decoder.awaited ?? null) : null);
  }

  /** Ends the turn if the program has not finished a step in time. The process must not get another turn. */
  #handleLate(event: TurnEnd | TurnFailed): void {
    this.#program.onUnexpectedOutput?.();
    this.#guarded(() => this.#handle(event));
  }

  #handleAll(decode: () => Iterable<TurnEvent>): void {
    this.#guarded(() => {
      for (const event of decode()) this.#handle(event);
    });
  }

  /** Fails the turn if the action throws, because an uncaught error would end the service. */
  #guarded(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.fail(error instanceof LineTooLong ? cliError('output_too_large', error.message) : error);
    }
  }

  /** Handles one event. An event after the end of the turn belongs to another turn. */
  #handle(event: TurnEvent): void {
    if (!this.#isOpen || event.type === 'stray') return this.#program.onUnexpectedOutput?.();
    if (event.type === 'waiting') return this.#wait(event);
    this.#waitFailure = null;
    if (event.type === 'model-named') this.#sink.model?.(event.model);
    else if (event.type === 'turn-end') this.#finish(event);
    else if (event.type === 'turn-failed') this.fail(cliError(event.reason, event.message, event));
    else if (event.type === 'input-taken') this.#writeNext();
    else if (event.type === 'message-added') this.#added(event.id);
    else if (event.type === 'message-refused') this.#take(event.id)?.resolve(false);
    else this.#write(event);
  }

  #wait(waiting: Waiting): void {
    const { ms, failure } = waiting;
    const { reason, message, quota } = failure;
    const until = quota && { ...quota, resetsAt: quota.resetsAt ?? this.#clock.now() + ms };
    const more = { retryAfterSeconds: retryAfter('cli_wait', ms), ...(until && { quota: until }) };
    this.#waitFailure = new RelayError('cli_error', message, { reason, ...more });
    if (this.#sink.waits?.(waiting) === false) this.fail(this.#waitFailure);
  }

  #write(event: AnswerEvent): void {
    const bytes = bytesOf(event);
    const isThought = event.type === 'thought-delta' || event.type === 'thought-end';
    const isHidden = isThought && this.#sink.hidesThoughts === true;
    if (isHidden) this.#hiddenBytes += bytes;
    if (isHidden) return;
    this.#bytes += bytes;
    if (this.#bytes > this.#maxOutputBytes) return this.fail(this.#tooLarge());
    this.#sink.write(event);
    if (this.#sink.hasEnough) this.#cut({ type: 'turn-end', text: null, model: null, usage: unknownUsage });
  }

  /** Adds a message of the user. Resolves with whether the model gets it in this turn. */
  async addMessage(text: string): Promise<boolean> {
    const message = this.#isOpen ? (this.#program.writer?.add?.(text) ?? null) : null;
    if (message === null) return false;
    const { promise, resolve } = withResolvers<boolean>();
    this.#additions.set(message.id, { text, resolve });
    if (message.input !== '') this.#program.stdin.write(message.input);
    return promise;
  }

  /** A message of an earlier turn would be in this turn without its client's knowledge. */
  #added(id: string): void {
    const addition = this.#take(id);
    if (addition === undefined) return this.#program.onUnexpectedOutput?.();
    this.#sink.added?.(addition.text);
    addition.resolve(true);
  }

  #take(id: string): Addition | undefined {
    const addition = this.#additions.get(id);
    this.#additions.delete(id);
    return addition;
  }

  /** Ends the turn with the text so far. Returns false if the turn has already ended. */
  interrupt(): boolean {
    if (!this.#isOpen) return false;
    this.#cut({ type: 'turn-end', text: null, model: null, usage: unknownUsage, isCutShort: true });
    return true;
  }

  /** Ends the turn at this point of the answer. The process still writes, so it must not get another turn. */
  #cut(end: TurnEnd): void {
    this.#program.onUnexpectedOutput?.();
    this.#close();
    this.#ended.resolve(end);
  }

  #finish(end: TurnEnd): void {
    this.#end = end;
    if (end.text !== null && Buffer.byteLength(end.text) > this.#maxOutputBytes) return this.fail(this.#tooLarge());
    this.#close();
    this.#ended.resolve(end);
  }

  #writeNext(): void {
    const { value: text, done } = this.#inputLeft.next();
    if (done) return this.fail(cliError('other', 'the model CLI requested more input than the turn contains'));
    this.#program.stdin.write(text);
  }

  /** Stops reading stdout until the client catches up, so that the program blocks in its write. */
  async #awaitRoom(): Promise<void> {
    this.#silence.pause();
    this.#step.set(null);
    this.#program.output.pause();
    await this.#sink.room();
    if (!this.#isOpen) return;
    this.#silence.reset();
    this.#watchStep();
    this.#program.output.startReading();
  }

  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const { resolve } of this.#additions.values()) resolve(false);
    this.#additions.clear();
    this.#guarded(() => this.#reportUse());
    this.#silence[Symbol.dispose]();
    this.#step[Symbol.dispose]();
    this.#program.output.startReading(); // reads and drops the remaining output
  }

  #reportUse(): void {
    const { decoder } = this.#program;
    const end = this.#end;
    const usage = end?.usage ?? decoder.usedSoFar ?? unknownUsage;
    const outputBytes = Math.max(this.#bytes, Buffer.byteLength(end?.text ?? '')) + this.#hiddenBytes;
    const isReported = end !== null || usage.inputTokens !== null || usage.outputTokens !== null;
    if (!isReported && outputBytes === 0 && !decoder.hasBegun) return;
    const hasCalls = (end?.calls ?? []).length > 0;
    this.#sink.used?.({ usage, isCut: end === null, outputBytes, hasCalls });
  }

  #tooLarge(): RelayError {
    return cliError(
      'output_too_large',
      `the answer is longer than ${this.#maxOutputBytes} bytes (MODEL_API_MAX_OUTPUT_BYTES)`,
    );
  }
}

/**
 * Returns the error for a program that the kernel refused to execute. Only the log has its stderr, with reason and path.
 */
function notExecuted({ stderr }: Exit): RelayError {
  return new RelayError('spawn_error', 'the model CLI could not be started: it cannot be executed', { stderr });
}

/** Whether output between turns contains no part of an answer. */
export function saysNothing(decoder: Decoder, decode: Decode): boolean {
  try {
    return Array.from(decode(decoder)).length === 0 && !decoder.isMidAnswer;
  } catch {
    return false;
  }
}

/** Owns the timer that ends a turn when the model does not begin or the program stops writing. */
export class SilenceLimit implements Disposable {
  readonly #limitMs: number;
  readonly #clock: Clock;
  readonly #onExceeded: (reason: RelayError) => void;
  #stopTimer: StopTimer = () => {};

  /** `limitMs`: longest silence of the model before its first output, and of the program after it; 0: no limit. */
  constructor(limitMs: number, clock: Clock, onExceeded: (reason: RelayError) => void) {
    this.#limitMs = limitMs;
    this.#clock = clock;
    this.#onExceeded = onExceeded;
    this.#restart('the model', 'before its first output');
  }

  /** Restarts the timer, after output of a model that has begun. */
  reset(): void {
    this.#restart('the model CLI', 'between two outputs');
  }

  /** Stops the timer while the output is not read: silence is then not the program's fault. */
  pause(): void {
    this.#stopTimer();
  }

  [Symbol.dispose](): void {
    this.pause();
  }

  #restart(who: string, when: string): void {
    this.#stopTimer();
    const limitMs = this.#limitMs;
    if (limitMs === 0) return;
    const reason = new RelayError('timeout', `${who} was silent for ${limitMs} ms ${when} (MODEL_API_STALL_TIMEOUT)`);
    this.#stopTimer = this.#clock.after(limitMs, () => this.#onExceeded(reason));
  }
}
