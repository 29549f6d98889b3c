import type { Clock, StopTimer } from '../../shared/clock.js';
import type { ConversationSnapshot } from '../../shared/conversation.js';
import { RelayError, toRelayError, toWire } from '../../shared/errors.js';
import {
  type FailedOutcome,
  type JobDone,
  type JobFailed,
  type JobRequest,
  outcomes,
  unknownJobUsage,
} from '../../shared/job.js';
import type { Launch, TurnEnd } from '../cli/adapter.js';
import type { ConversationTurn } from '../conversations/conversation-turn.js';
import { JobStream } from './job-stream.js';
import type { Ticket } from './slot-queue.js';

/** What a job holds from its admission to its end. */
type Admission = Pick<Job, 'request' | 'launch' | 'ticket' | 'turn'>;

/**
 * One admitted job: what it holds, its signal, its limits and its times. The signal is aborted by the caller, by a limit
 * or by the end of a drain. The first reason wins, and is the error that the job ends with.
 */
export class Job {
  readonly request: JobRequest;
  readonly launch: Launch;
  readonly ticket: Ticket;
  /** For `chat`: its turn on the conversation. */
  readonly turn: ConversationTurn | null;
  readonly stream: JobStream;
  usage = unknownJobUsage;
  readonly #clock: Clock;
  readonly #caller: AbortSignal;
  // Not AbortSignal.any: over a signal that outlives many jobs it leaks on Node 20.
  readonly #controller = new AbortController();
  readonly #onCallerAbort = () => this.cut(this.#caller.reason);
  readonly #arrivedMs: number;
  #startedMs: number | null = null;
  #stopTimer: StopTimer = () => {};

  constructor({ request, launch, ticket, turn }: Admission, caller: AbortSignal, clock: Clock) {
    this.request = request;
    this.launch = launch;
    this.ticket = ticket;
    this.turn = turn;
    this.stream = new JobStream(request.isStreamed);
    this.#clock = clock;
    this.#caller = caller;
    this.#arrivedMs = clock.monotonicMs();
    if (caller.aborted) this.#onCallerAbort();
    else caller.addEventListener('abort', this.#onCallerAbort, { once: true });
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

  /** The slot is granted: from here on the execution time counts. */
  start(limitMs: number): void {
    this.#startedMs = this.#clock.monotonicMs();
    this.#limit(limitMs, () => new RelayError('timeout', `the model took longer than ${limitMs} ms`));
    this.stream.started(this.queueMs);
  }

  cut(reason: Error): void {
    this.#controller.abort(reason);
  }

  /** No limit applies any more. */
  close(): void {
    this.#stopTimer();
    this.#caller.removeEventListener('abort', this.#onCallerAbort);
  }

  done(
    { text, usage, model }: TurnEnd,
    fallbackModel: string | null,
    conversation: ConversationSnapshot | null,
  ): JobDone {
    const answer = { text, usage, model: model ?? fallbackModel, conversation };
    return { type: 'job-end', outcome: 'ok', ...answer, ...this.#figures() };
  }

  failed(thrown: unknown): JobFailed {
    return { type: 'job-end', outcome: outcomeOf(thrown), failure: toWire(thrown), ...this.#figures() };
  }

  #figures() {
    const { queueMs, executionMs, usage } = this;
    return { queueMs, executionMs, ...usage };
  }

  #limit(limitMs: number, reason: () => Error): void {
    this.#stopTimer();
    this.#stopTimer = this.#clock.after(limitMs, () => this.cut(reason()));
  }
}

/** The end of a job that was not started, and waited for nothing. */
export function refusedEnd(refusal: RelayError): JobFailed {
  const failure = toWire(refusal);
  return { type: 'job-end', outcome: outcomeOf(refusal), failure, queueMs: 0, executionMs: 0, ...unknownJobUsage };
}

function outcomeOf(thrown: unknown): FailedOutcome {
  const { code } = toRelayError(thrown);
  return outcomes.find((outcome): outcome is FailedOutcome => outcome === code) ?? 'internal_error';
}
