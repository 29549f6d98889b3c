import { z } from 'zod';
import { errorBody } from '../../shared/api/error.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import type { PassedModel } from '../../shared/job.js';
import type { Client } from '../base/client.js';
import type { CommandContext } from '../base/command.js';
import { CommandError, exitCodes, jobCancelled, ServiceError } from '../base/errors.js';
import type { ServerEvent } from '../base/http.js';
import type { Terminal } from '../base/terminal.js';

export interface JobAnswer {
  readonly response: string;
  readonly model?: string | null;
  /** Models that could not answer before this one. */
  readonly fallback?: readonly PassedModel[] | undefined;
}

interface JobCall<T extends JobAnswer> {
  readonly path: '/ask' | '/chat';
  readonly body: object;
  /** Schema of the final answer. */
  readonly schema: z.ZodType<T>;
}

const queuedEvent = z.looseObject({ position: z.int() });
const cancelledEvent = z.looseObject({ cancelled_by: z.string().optional() });
const deltaEvent = z.looseObject({ text: z.string() });

/** Runs one job and returns its answer. Throws a CommandError, or the reason of the signal. */
export function runJob<T extends JobAnswer>(
  client: Client,
  { path, body, schema }: JobCall<T>,
  signal: AbortSignal,
  printer?: AnswerPrinter,
): Promise<T> {
  return collectJob(client, client.stream(path, body, signal), (data) => client.parse(data, schema), printer);
}

/** Reads the events of one job and returns its answer. Throws a CommandError. */
export async function collectJob<T extends JobAnswer>(
  client: Client,
  events: AsyncIterable<ServerEvent>,
  answerOf: (data: string) => T,
  printer?: AnswerPrinter,
): Promise<T> {
  for await (const { event, data } of events) {
    if (event === 'queued') printer?.onQueued(client.parse(data, queuedEvent).position);
    if (event === 'started') printer?.onStarted();
    if (event === 'error') throw new ServiceError(client.parse(data, errorBody));
    if (event === 'cancelled') throw jobCancelled(client.parse(data, cancelledEvent).cancelled_by);
    if (event === 'delta') await printer?.onDelta(client.parse(data, deltaEvent).text);
    if (event === 'done') return answerOf(data);
  }
  throw new CommandError(exitCodes.unavailable, `the response from ${client.url} was cut off before the answer ended`);
}

const stepMs = 1000;

/** Owns the line on stderr that shows what a job waits for and for how many seconds. Only a terminal shows it. */
class WaitingLine {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  #what = '';
  #sinceMs = 0;
  #stopTimer: StopTimer = () => {};

  constructor(terminal: Terminal, clock: Clock) {
    this.#terminal = terminal;
    this.#clock = clock;
  }

  /** Shows what the job waits for. A new wait restarts the seconds, a new position in the queue does not. */
  show(what: string, isNewWait: boolean): void {
    if (!this.#terminal.isStderrTty) return;
    if (isNewWait || this.#what === '') this.#sinceMs = this.#clock.monotonicMs();
    this.#what = what;
    this.#draw();
    this.#stopTimer();
    this.#stopTimer = this.#clock.every(stepMs, () => this.#draw());
  }

  erase(): void {
    this.#stopTimer();
    if (this.#what !== '') this.#terminal.showProgress('');
    this.#what = '';
  }

  #draw(): void {
    const seconds = Math.floor((this.#clock.monotonicMs() - this.#sinceMs) / 1000);
    this.#terminal.showProgress(this.#terminal.messagePaint.dim(`${this.#what}, ${seconds} s …`));
  }
}

type PrinterParts = Pick<CommandContext, 'terminal' | 'clock'>;

/** Runs a job and prints its answer. Throws the errors of `runJob`. */
export function printJob<T extends JobAnswer>(
  client: Client,
  call: JobCall<T>,
  signal: AbortSignal,
  parts: PrinterParts,
): Promise<T> {
  return printAnswer((printer) => runJob(client, call, signal, printer), parts);
}

/** Prints the progress of a job and its answer, which `run` reports to the printer. */
export async function printAnswer<T extends JobAnswer>(
  run: (printer: AnswerPrinter) => Promise<T>,
  { terminal, clock }: PrinterParts,
): Promise<T> {
  const printer = new AnswerPrinter(terminal, new WaitingLine(terminal, clock));
  printer.onSent();
  try {
    const answer = await run(printer);
    await printer.finish(answer);
    if (answer.fallback !== undefined) terminal.message(terminal.messagePaint.dim(fallbackNote(answer)));
    return answer;
  } catch (error) {
    await printer.cut();
    throw error;
  }
}

function fallbackNote({ model, fallback = [] }: JobAnswer): string {
  const passed = fallback.map((each) => `${each.model} (${each.reason})`);
  return `answered by ${model ?? 'another model'} instead of ${passed.join(' and ')}`;
}

const startedOver = '(The model started over. Ignore the text above.)';

/**
 * Prints an answer. A terminal shows deltas as they arrive; a file or a pipe, which cannot be corrected, gets only the
 * final answer.
 */
class AnswerPrinter {
  readonly #terminal: Terminal;
  readonly #waiting: WaitingLine;
  #printed = '';

  constructor(terminal: Terminal, waiting: WaitingLine) {
    this.#terminal = terminal;
    this.#waiting = waiting;
  }

  onSent(): void {
    this.#waiting.show('waiting for the service', true);
  }

  onQueued(position: number): void {
    this.#waiting.show(`waiting for a slot, place ${position} in the queue`, false);
  }

  onStarted(): void {
    this.#waiting.show('the model is working', true);
  }

  async onDelta(text: string): Promise<void> {
    if (this.#terminal.isStdoutTty) await this.#write(text);
  }

  /**
   * Prints the final answer. If it differs from the printed deltas because the model started over, prints it again in
   * full.
   */
  async finish({ response }: JobAnswer): Promise<void> {
    if (response.startsWith(this.#printed)) {
      await this.#write(response.slice(this.#printed.length));
    } else {
      await this.#endLine();
      await this.#terminal.writeLine(this.#terminal.paint.dim(startedOver));
      await this.#write(response);
    }
    await this.#endLine();
  }

  /** Ends the line of an unfinished answer, if a part of it was printed. */
  async cut(): Promise<void> {
    if (this.#printed === '') this.#waiting.erase();
    else await this.#endLine();
  }

  async #write(text: string): Promise<void> {
    if (text === '') return;
    this.#waiting.erase();
    this.#printed += text;
    await this.#terminal.writeUntrusted(text);
  }

  async #endLine(): Promise<void> {
    this.#waiting.erase();
    if (!this.#printed.endsWith('\n')) await this.#terminal.writeText('\n');
  }
}
