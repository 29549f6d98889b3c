import type { JobListener } from './job.js';
import type { Terminal } from './terminal.js';

/** Shows a job to whoever waits for it: its place in the queue as talk, its answer as data, as it comes. */
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
    if (text === '') return;
    this.clearHint();
    this.#last = text;
    await this.#terminal.writeForeign(text);
  }

  /** Ends the line that the answer ended in. */
  async end(): Promise<void> {
    this.clearHint();
    if (!this.#last.endsWith('\n')) await this.#terminal.write('\n');
  }

  /** Ends the line of an answer that was cut short, if it has begun one. */
  async breakOff(): Promise<void> {
    if (this.#last === '') this.clearHint();
    else await this.end();
  }

  clearHint(): void {
    if (this.#hasHint) this.#terminal.hint('');
    this.#hasHint = false;
  }

  #hint(talk: string): void {
    this.#hasHint = true;
    this.#terminal.hint(this.#terminal.talkPaint.dim(talk));
  }
}
