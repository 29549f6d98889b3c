import type { Clock, StopTimer } from '../../shared/clock.js';
import type { ConversationSnapshot } from '../../shared/conversation.js';
import { Cancelled, RelayError, toRelayError } from '../../shared/errors.js';
import { type FailedOutcome, type JobDone, type JobFailed, outcomes } from '../../shared/job.js';
import type { TurnEnd } from '../cli/adapter.js';

/**
 * One admitted job's life: its signal, its limits, its times. The signal is aborted by the caller, by a limit or by the
 * end of a drain; the first reason wins and is the error that the job ends with.
 */
export class Job implements Disposable {
  readonly #clock: Clock;
  readonly #caller: AbortSignal;
  // A controller of its own: AbortSignal.any over a signal that outlives many jobs leaks on Node 20.
  readonly #controller = new AbortController();
  readonly #cancel = () => this.cut(this.#caller.reason);
  readonly #arrivedMs: number;
  #startedMs: number | null = null;
  #stopTimer: StopTimer = () => {};

  constructor(clock: Clock, caller: AbortSignal) {
    this.#clock = clock;
    this.#caller = caller;
    this.#arrivedMs = clock.monotonicMs();
    if (caller.aborted) this.#cancel();
    else caller.addEventListener('abort', this.#cancel, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get hasStarted(): boolean {
    return this.#startedMs !== null;
  }

  /** Milliseconds from arrival to the slot, or until now. */
  get queueMs(): number {
    return Math.round((this.#startedMs ?? this.#clock.monotonicMs()) - this.#arrivedMs);
  }

  get executionMs(): number {
    return this.#startedMs === null ? 0 : Math.round(this.#clock.monotonicMs() - this.#startedMs);
  }

  limitWaiting(limitMs: number): void {
    this.#limit(limitMs, () => new RelayError('queue_timeout', `waited ${limitMs} ms for a slot`));
  }

  /** The slot is granted: from here the execution time counts. */
  start(limitMs: number): void {
    this.#startedMs = this.#clock.monotonicMs();
    this.#limit(limitMs, () => new RelayError('timeout', `the model took longer than ${limitMs} ms`));
  }

  cut(reason: Error): void {
    this.#controller.abort(reason);
  }

  done(end: TurnEnd, model: string | null, conversation: ConversationSnapshot | null): JobDone {
    const { text, usage } = end;
    const { queueMs, executionMs } = this;
    return {
      type: 'job-end',
      outcome: 'ok',
      text,
      model: end.model ?? model,
      usage,
      conversation,
      queueMs,
      executionMs,
    };
  }

  failed(thrown: unknown): JobFailed {
    const { code, message, details, retryAfterSeconds } = toRelayError(thrown);
    return {
      type: 'job-end',
      outcome: outcomeOf(thrown),
      failure: { code, message, details, retryAfterSeconds },
      queueMs: this.queueMs,
      executionMs: this.executionMs,
    };
  }

  [Symbol.dispose](): void {
    this.#stopTimer();
    this.#caller.removeEventListener('abort', this.#cancel);
  }

  #limit(limitMs: number, reason: () => Error): void {
    this.#stopTimer();
    this.#stopTimer = this.#clock.after(limitMs, () => this.cut(reason()));
  }
}

function outcomeOf(thrown: unknown): FailedOutcome {
  if (thrown instanceof Cancelled) return 'cancelled';
  const { code } = toRelayError(thrown);
  return outcomes.find((outcome): outcome is FailedOutcome => outcome === code) ?? 'internal_error';
}
