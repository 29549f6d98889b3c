import type { Client } from './client.js';
import { type JobAnswer, type JobCall, type JobListener, runJob } from './job.js';
import type { Terminal } from './terminal.js';

const startedOver = '(The model started over. Ignore the text above.)';

/** Runs a job and prints its answer. Throws what `runJob` throws. */
export async function printJob<T extends JobAnswer>(
  client: Client,
  call: JobCall<T>,
  signal: AbortSignal,
  terminal: Terminal,
): Promise<T> {
  const printer = new AnswerPrinter(terminal);
  try {
    const answer = await runJob(client, call, signal, printer);
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
  #hasProgress = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  onQueued(position: number): void {
    this.#showProgress(`waiting for a slot, position ${position} in the queue …`);
  }

  onStarted(): void {
    this.#showProgress('…');
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
    if (this.#lastText === '') this.#clearProgress();
    else await this.#endLine();
  }

  async #write(text: string): Promise<void> {
    if (text === '') return;
    this.#clearProgress();
    this.#lastText = text;
    await this.#terminal.writeUntrusted(text);
  }

  async #endLine(): Promise<void> {
    this.#clearProgress();
    if (!this.#lastText.endsWith('\n')) await this.#terminal.write('\n');
  }

  #showProgress(text: string): void {
    this.#hasProgress = true;
    this.#terminal.showProgress(this.#terminal.messagePaint.dim(text));
  }

  #clearProgress(): void {
    if (this.#hasProgress) this.#terminal.showProgress('');
    this.#hasProgress = false;
  }
}
