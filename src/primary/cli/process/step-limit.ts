import type { Clock, StopTimer } from '../../../shared/clock.js';
import type { TurnEnd, TurnFailed } from '../contract/adapter.js';
import type { AwaitedStep } from '../contract/awaited-step.js';

type TurnStep = AwaitedStep<TurnEnd | TurnFailed>;

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
    if (step !== null) this.#stopTimer = this.#clock.after(step.limitMs, () => this.#onLate(step.late));
  }

  [Symbol.dispose](): void {
    this.set(null);
  }
}
