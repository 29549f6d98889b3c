import type { Clock, StopTimer } from '../shared/clock.js';
import type { Terminal } from './terminal.js';

const stepMs = 1000;

/** Owns the line of stderr that tells what a job waits for, and for how many seconds. It is there on a terminal only. */
export class WaitingLine {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  #what = '';
  #sinceMs = 0;
  #stopTimer: StopTimer = () => {};

  constructor(terminal: Terminal, clock: Clock) {
    this.#terminal = terminal;
    this.#clock = clock;
  }

  /** The job waits for this from now on. What changes beside it, such as a place, does not restart the seconds. */
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
