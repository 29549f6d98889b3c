import type { Client } from './client.js';
import type { CommandContext } from './command.js';
import { type JobAnswer, type JobCall, type JobListener, runJob } from './job.js';
import type { Terminal } from './terminal.js';
import { WaitingLine } from './waiting.js';

const startedOver = '(The model started over. Ignore the text above.)';

type PrinterParts = Pick<CommandContext, 'terminal' | 'clock'>;

/** Runs a job and prints its answer. Throws what `runJob` throws. */
export function printJob<T extends JobAnswer>(
  client: Client,
  call: JobCall<T>,
  signal: AbortSignal,
  parts: PrinterParts,
): Promise<T> {
  return printAnswer((listener) => runJob(client, call, signal, listener), parts);
}

/** Prints the answer of a job while `run` tells of it. */
export async function printAnswer<T extends JobAnswer>(
  run: (listener: JobListener) => Promise<T>,
  { terminal, clock }: PrinterParts,
): Promise<T> {
  const printer = new AnswerPrinter(terminal, new WaitingLine(terminal, clock));
  printer.onSent();
  try {
    const answer = await run(printer);
    await printer.finish(answer);
    return answer;
  } catch (error) {
    await printer.cut();
    throw error;
  }
}

/** To a terminal, prints deltas as they arrive. To a file or a pipe, which cannot be corrected, prints the final answer. */
class AnswerPrinter implements JobListener {
  readonly #terminal: Terminal;
  #lastText = '';
  readonly #waiting: WaitingLine;

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
    this.#waiting.show('the model is at work', true);
  }

  async onDelta(text: string): Promise<void> {
    if (this.#terminal.isStdoutTty) await this.#write(text);
  }

  async onReplaced(response: string): Promise<void> {
    if (!this.#terminal.isStdoutTty) return;
    await this.#endLine();
    await this.#terminal.writeLine(this.#terminal.paint.dim(startedOver));
    await this.#write(response);
  }

  async finish({ response }: JobAnswer): Promise<void> {
    if (!this.#terminal.isStdoutTty) await this.#write(response);
    await this.#endLine();
  }

  /** Ends the line of an unfinished answer, if any of it was printed. */
  async cut(): Promise<void> {
    if (this.#lastText === '') this.#waiting.erase();
    else await this.#endLine();
  }

  async #write(text: string): Promise<void> {
    if (text === '') return;
    this.#waiting.erase();
    this.#lastText = text;
    await this.#terminal.writeUntrusted(text);
  }

  async #endLine(): Promise<void> {
    this.#waiting.erase();
    if (!this.#lastText.endsWith('\n')) await this.#terminal.write('\n');
  }
}
