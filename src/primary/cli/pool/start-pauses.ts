import type { Clock, StopTimer } from '../../../shared/clock.js';
import type { CliProcess } from '../process/cli-process.js';

/** Time from the start of a turn for which standby processes that still start are paused, milliseconds. */
const headStartMs = 150;
/** Age above which a standby process is not paused, because its start is over or was delayed long enough. */
const maxPausedAgeMs = 500;

/**
 * Owns the pauses of programs that are being started in advance. While a turn begins, they are paused, because a start
 * occupies a processor: a further turn of a chat that begins with such a start takes 86 ms, and 101 ms without the pause
 * (bench `claude`, decision 11).
 */
export class StartPauses {
  readonly #clock: Clock;
  readonly #processes: () => Iterable<CliProcess>;
  #stopTimer: StopTimer = () => {};

  constructor(clock: Clock, processes: () => Iterable<CliProcess>) {
    this.#clock = clock;
    this.#processes = processes;
  }

  /** Pauses or resumes standby processes. Called after each change of a process. */
  update(): void {
    const nowMs = this.#clock.monotonicMs();
    const processes = [...this.#processes()];
    const waiting = processes.filter(({ state }) => state.name === 'standby');
    const begun = processes.filter(({ state }) => state.name === 'busy' && state.turn !== null);
    const leftMs = Math.max(0, ...begun.map(({ sinceMs }) => sinceMs + headStartMs - nowMs));
    for (const process of waiting) {
      if (leftMs > 0 && nowMs - process.startedMs < maxPausedAgeMs) process.pause();
      else process.resume();
    }
    this.#stopTimer();
    if (leftMs > 0 && waiting.length > 0) this.#stopTimer = this.#clock.after(leftMs, () => this.update());
  }
}
