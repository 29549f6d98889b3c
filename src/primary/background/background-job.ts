import { orAborted, withResolvers } from '../../shared/async/promises.js';
import type { BackgroundJobView } from '../../shared/background.js';
import type { Clock } from '../../shared/clock.js';
import type { JobEnd, JobEvent, JobStart, WaitReason } from '../../shared/job.js';
import { sizeOf } from '../jobs/job.js';
import type { Ticket } from '../jobs/ticket.js';
import type { AcceptedJob } from '../store/contract/jobs.js';
import { AnswerLog } from './answer-log.js';

/** While it waits, those who follow it are told its place at this pace. */
const positionMs = 1000;

/** Its start and its end, as events, where they have come. */
type Progress =
  | { readonly name: 'waiting' }
  /** Another host may have it: what becomes of it is not told here. */
  | { readonly name: 'given-up' }
  | { readonly name: 'running'; readonly start: JobStart }
  | { readonly name: 'ended'; readonly start: JobStart | null; readonly end: JobEnd };

/** What a reader of the events was told. */
interface JobReader {
  position: number;
  reason: WaitReason | null;
  hasStart: boolean;
  /** Of the text. */
  length: number;
}

/** One background job from its acceptance to its end, and what it has answered. */
export class BackgroundJob {
  readonly accepted: AcceptedJob;
  readonly text = new AnswerLog();
  /** Of its texts and images. */
  readonly bytes: number;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  #progress: Progress = { name: 'waiting' };
  /** Its place in the waiting room. */
  #ticket: Ticket | null = null;
  #startedAt: number | null = null;
  #restsUntilMs = 0;
  #mayHaveStarted = false;
  /** Readers that wait for news. */
  readonly #waiters = new Set<() => void>();

  constructor(accepted: AcceptedJob, clock: Clock) {
    this.accepted = accepted;
    this.bytes = sizeOf(accepted.request);
    this.#clock = clock;
  }

  get client(): string {
    return this.accepted.request.client;
  }

  /** Aborted when it is cancelled. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get hasStarted(): boolean {
    return this.#progress.name === 'running' || (this.#progress.name === 'ended' && this.#progress.start !== null);
  }

  get isWaiting(): boolean {
    return this.#progress.name === 'waiting';
  }

  /** Milliseconds from its acceptance to its start, or until now. */
  get queueMs(): number {
    return Math.max(0, (this.#startedAt ?? this.#clock.now()) - this.accepted.createdAt);
  }

  get #position(): number {
    return Math.max(1, this.#ticket?.position ?? 1);
  }

  get #reason(): WaitReason {
    return this.#ticket?.reason ?? 'slot';
  }

  get view(): BackgroundJobView {
    const { id, form, createdAt, request } = this.accepted;
    const { operation, requestId } = request;
    const status = this.isWaiting ? 'queued' : 'running'; // that it has ended is told once that is kept
    const position = this.isWaiting ? this.#position : null;
    const reason = this.isWaiting ? this.#reason : null;
    const startedAt = this.#startedAt;
    return {
      id,
      operation,
      requestId,
      form,
      status,
      position,
      reason,
      createdAt,
      startedAt,
      endedAt: null,
      failure: null,
    };
  }

  cancel(reason: Error): void {
    this.#controller.abort(reason);
  }

  /** It has a place in the waiting room. */
  entered(ticket: Ticket): void {
    this.#ticket = ticket;
    this.#changed();
  }

  /** The store is being asked to have it as started. */
  starting(): void {
    this.#mayHaveStarted = true;
  }

  /** As far as the store is concerned, whose answer may not have come. */
  get mayHaveStarted(): boolean {
    return this.#mayHaveStarted;
  }

  /** It could not start: it waits again, and is not tried before this time has passed. */
  putBack(restMs: number): void {
    this.#restsUntilMs = this.#clock.monotonicMs() + restMs;
    this.#goTo({ name: 'waiting' });
  }

  giveUp(): void {
    this.#goTo({ name: 'given-up' });
  }

  get isGivenUp(): boolean {
    return this.#progress.name === 'given-up';
  }

  get isResting(): boolean {
    return this.#clock.monotonicMs() < this.#restsUntilMs;
  }

  take(event: JobEvent): void {
    if (event.type === 'job-start') {
      this.#startedAt = this.#clock.now();
      this.#goTo({ name: 'running', start: { ...event, queueMs: this.queueMs } });
    }
    if (event.type !== 'text-delta') return;
    this.text.add(event.text);
    this.#changed();
  }

  ended(end: JobEnd): void {
    this.#goTo({ name: 'ended', start: this.#progress.name === 'running' ? this.#progress.start : null, end });
  }

  /** All events from its beginning until it has ended or is given up, text in pieces of any size. Rejects with the signal's reason. */
  async *events(signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    const reader: JobReader = { position: 0, reason: null, hasStart: false, length: 0 };
    for (;;) {
      const event = this.#eventFor(reader);
      if (event !== null) yield event;
      if (event?.type === 'job-end' || this.#progress.name === 'given-up') return;
      if (event === null) await this.#news(signal);
    }
  }

  /** The next one that this reader was not told. */
  #eventFor(reader: JobReader): JobEvent | null {
    const progress = this.#progress;
    if (progress.name === 'given-up') return null;
    if (progress.name === 'waiting') {
      const [position, reason] = [this.#position, this.#reason];
      if (position === reader.position && reason === reader.reason) return null;
      reader.position = position;
      reader.reason = reason;
      return { type: 'job-queued', position, reason };
    }
    if (progress.start !== null && !reader.hasStart) {
      reader.hasStart = true;
      return progress.start;
    }
    const text = this.text.read(reader.length);
    reader.length += text.length;
    if (text !== '') return { type: 'text-delta', text };
    return progress.name === 'ended' ? progress.end : null;
  }

  /** Nothing may be awaited between the look for an event and this: what changes meanwhile would be missed. */
  async #news(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = withResolvers();
    const stopTimer = this.isWaiting ? this.#clock.after(positionMs, resolve) : () => {};
    this.#waiters.add(resolve);
    try {
      await orAborted(promise, signal);
    } finally {
      this.#waiters.delete(resolve);
      stopTimer();
    }
  }

  #goTo(progress: Progress): void {
    this.#progress = progress;
    this.#changed();
  }

  #changed(): void {
    for (const resolve of this.#waiters) resolve();
  }
}
