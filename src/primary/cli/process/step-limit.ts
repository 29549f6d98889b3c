import type { Clock, StopTimer } from '../../../shared/clock.js';
import type { TurnEnd, TurnFailed } from '../contract/adapter.js';
import type { AwaitedStep } from '../contract/awaited-step.js';

type TurnStep = AwaitedStep<TurnEnd | TurnFailed>;

/**
 * Lateness of a timer in milliseconds that shows that this process itself has stood still. What the program has written
 * meanwhile is not read yet, so the time begins anew.
 */
const stoppedMs = 1000;

/** Owns the timer of the step that a program must finish now. */
export class StepLimit implements Disposable {
  readonly #clock: Clock;
  readonly #onLate: (event: TurnStep['late']) => void;
  #name: string | null = null;
  #stopTimer: StopTimer = () => {};

  constructor(clock: Clock, onLate: (event: TurnStep['late']) => void) {
    this.#clock = clock;
    this.#onLate = onLate;
  }

  /** Sets the step; null if the program may take its time. The timer of an unchanged step continues. */
  set(step: TurnStep | null): void {
    const name = step?.name ?? null;
    if (name === this.#name) return;
    this.#stopTimer();
    this.#name = name;
    if (step !== null) this.#start(step);
  }

  #start({ limitMs, late }: Omit<TurnStep, 'name'>): void {
    const dueMs = this.#clock.monotonicMs() + limitMs;
    this.#stopTimer = this.#clock.after(limitMs, () => {
      if (this.#clock.monotonicMs() - dueMs > stoppedMs) this.#start({ limitMs, late });
      else this.#onLate(late);
    });
  }

  [Symbol.dispose](): void {
    this.set(null);
  }
}
