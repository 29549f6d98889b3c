import type { Answer, JobListener } from './job.js';
import type { Terminal } from './terminal.js';

const startedOver = '(The model started over: ignore what stands above.)';

/**
 * Shows a job to whoever waits for it: its place in the queue as talk, its answer as data.
 * On a screen as it comes; elsewhere once it is final, as what is written there can't be taken back.
 */
export class SpokenAnswer implements JobListener {
  readonly #terminal: Terminal;
  #last = '';
  #hasHint = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  queued(position: number): void {
    this.#hint(`waiting for a slot, place ${position} in the queue …`);
  }

  started(): void {
    this.#hint('…');
  }

  async delta(text: string): Promise<void> {
    if (this.#terminal.isScreen) await this.#write(text);
  }

  async corrected(response: string): Promise<void> {
    if (!this.#terminal.isScreen) return;
    await this.#endLine();
    await this.#terminal.line(this.#terminal.paint.dim(startedOver));
    await this.#write(response);
  }

  /** Ends the line that the answer ended in. */
  async end({ response }: Answer): Promise<void> {
    if (!this.#terminal.isScreen) await this.#write(response);
    await this.#endLine();
  }

  /** Ends the line of an answer that was cut short, if it has begun one. */
  async breakOff(): Promise<void> {
    if (this.#last === '') this.clearHint();
    else await this.#endLine();
  }

  clearHint(): void {
    if (this.#hasHint) this.#terminal.hint('');
    this.#hasHint = false;
  }

  async #write(text: string): Promise<void> {
    if (text === '') return;
    this.clearHint();
    this.#last = text;
    await this.#terminal.writeForeign(text);
  }

  async #endLine(): Promise<void> {
    this.clearHint();
    if (!this.#last.endsWith('\n')) await this.#terminal.write('\n');
  }

  #hint(talk: string): void {
    this.#hasHint = true;
    this.#terminal.hint(this.#terminal.talkPaint.dim(talk));
  }
}
