import type { Clock, StopTimer } from '../../../shared/clock.js';
import type { CliProcess } from '../process/cli-process.js';

/** A turn that begins has the processors for itself for this long, or until it ends. */
const headStartMs = 150;
/** An older program has started, or was held up for long enough. */
const maxAgeMs = 500;

/** Pauses programs that are just being started in advance while a turn begins: a start keeps a processor busy. */
export class HeadStart {
  readonly #processes: () => Iterable<CliProcess>;
  readonly #clock: Clock;
  #stopTimer: StopTimer = () => {};

  constructor(processes: () => Iterable<CliProcess>, clock: Clock) {
    this.#processes = processes;
    this.#clock = clock;
  }

  /** A process has changed its state. */
  changed(): void {
    const nowMs = this.#clock.monotonicMs();
    const processes = [...this.#processes()];
    const waiting = processes.filter(({ state }) => state.name === 'standby');
    const begun = processes.filter(({ state }) => state.name === 'busy' && state.turn !== null);
    const leftMs = Math.max(0, ...begun.map(({ sinceMs }) => sinceMs + headStartMs - nowMs));
    for (const process of waiting) {
      if (leftMs > 0 && nowMs - process.startedMs < maxAgeMs) process.pause();
      else process.resume();
    }
    this.#stopTimer();
    if (leftMs > 0 && waiting.length > 0) this.#stopTimer = this.#clock.after(leftMs, () => this.changed());
  }
}
