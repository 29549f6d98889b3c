import type { Clock, StopTimer } from '../../shared/clock.js';
import type { ConversationSnapshot } from '../../shared/conversation.js';
import { RelayError } from '../../shared/errors.js';
import { type JobEnd, type JobRequest, unknownJobUsage, type WaitReason } from '../../shared/job.js';
import type { CgroupUsage } from '../../shared/process/cgroup.js';
import type { LaunchOptions } from '../cli/contract/adapter.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { Route } from '../cli/route.js';
import type { ConversationTurn } from '../conversations/conversation-turn.js';
import type { Answered } from './answered.js';
import type { BackgroundPart } from './background-part.js';
import { addCharges, type Bill, type Charge, noCharge } from './bill.js';
import type { JobChain } from './job-chain.js';
import type { JobEvents } from './job-stream.js';
import type { JobTrace } from './job-trace.js';
import { passedModels, type RouteChoice } from './route-choice.js';
import type { Ticket } from './ticket.js';

/** Data to start a job, and its turn if it belongs to a conversation. */
export interface Prepared {
  readonly launch: LaunchOptions;
  /** Turn on the conversation, for `chat`. */
  readonly turn: ConversationTurn | null;
  /** Conversation state of an `ask` with a chain. */
  readonly chain: JobChain | null;
}

/** Parts of a job. */
export interface JobDescription<B> {
  readonly request: JobRequest;
  /** Route chosen at the admission, and the routes that may replace it if its model cannot answer. */
  readonly choice: RouteChoice;
  readonly events: JobEvents;
  /** Background data; null for a caller's job. */
  readonly background: B;
  /** Observer of the steps of the job; null for an untraced job. */
  readonly trace: JobTrace | null;
}

/** Turn of the model, which its client may influence. */
export interface TurnControl {
  /** Ends the turn with its text so far. Returns false if the turn has already ended. */
  interrupt(): boolean;
  /** Adds a message of the user. Resolves with whether the model gets it in this turn. */
  addMessage(text: string): Promise<boolean>;
}

/**
 * A job of a caller or in the background, with its resources, signal, limits and times. The caller, a limit or the
 * end of a drain aborts the signal. The first reason becomes the error of the job.
 */
export class Job<B extends BackgroundPart | null = BackgroundPart | null> {
  readonly events: JobEvents;
  readonly background: B;
  readonly trace: JobTrace | null;
  /** Changes when the earlier text that it refers to is read. */
  request: JobRequest;
  /** Number of the job, which rises with each admission of the service. */
  number = 0;
  /** Changes only when the job is moved to another route. */
  choice: RouteChoice;
  /**
   * Data from the admission; null before. A background job is admitted again after each failed attempt, and prepared
   * again when it gets its slot, because its conversation may have changed.
   */
  prepared: Prepared | null = null;
  /** Time when the job got its slot, monotonic and (`at`) in milliseconds since the epoch; null if it has none. */
  #start: { readonly monotonicMs: number; readonly at: number } | null = null;
  /** Whether its readers have its end. An ended job may never have started. */
  hasEnded = false;
  /** Place in the waiting room, or slot. */
  #ticket: Ticket | null = null;
  #usage = unknownJobUsage;
  #charge = noCharge;
  #reportedModel: string | null = null;
  /** Number of web searches that the job may make, and that it has made. */
  maxSearches = 0;
  #searches = 0;
  /** Whether a model has begun to answer. */
  hasOutput = false;
  /** Whether the model has received a message that is not in the request. */
  hasAdditions = false;
  /** Messages that were sent to a running turn, whether the model has received them or not. */
  readonly addedTexts: string[] = [];
  /** Whether the client has ended the answer early. */
  isInterrupted = false;
  /** Present turn of the model. `answered`: the model has answered. */
  turnControl: TurnControl | 'none' | 'answered' = 'none';
  /** Whether the program has answered or failed, even if the end is not stored yet. */
  isClosed = false;
  /** Start of the attempt with the present route, monotonic. */
  #attemptMs = 0;
  /** Execution time limit. */
  #limitMs = Number.POSITIVE_INFINITY;
  readonly #clock: Clock;
  readonly #caller: AbortSignal;
  // Not AbortSignal.any: over a signal that outlives many jobs it leaks on Node 20.
  #controller = new AbortController();
  readonly #onCallerAbort = () => this.cut(this.#caller.reason);
  /** Time of the last admission, monotonic. */
  #arrivedMs = 0;
  /** Time of the last admission, in milliseconds since the epoch. */
  arrivedAt = 0;
  #stopTimer: StopTimer = () => {};

  constructor({ request, choice, events, background, trace }: JobDescription<B>, caller: AbortSignal, clock: Clock) {
    this.request = request;
    this.choice = choice;
    this.events = events;
    this.background = background;
    this.trace = trace;
    this.#clock = clock;
    this.#caller = caller;
  }

  /** Admits the job. `enter` reserves its place in the waiting room, or its slot. */
  admit(number: number, prepared: Prepared, enter: () => Ticket): void {
    this.number = number;
    this.isClosed = false;
    this.#controller = new AbortController();
    this.#arrivedMs = this.#clock.monotonicMs();
    this.arrivedAt = this.#clock.now();
    this.prepared = prepared;
    this.#ticket = enter();
    if (this.#caller.aborted) this.#onCallerAbort();
    else this.#caller.addEventListener('abort', this.#onCallerAbort, { once: true });
  }

  get route(): Route {
    return this.choice.route;
  }

  /** Sets the route of a waiting job. */
  reroute(choice: RouteChoice): void {
    this.choice = choice;
    if (choice.route.label !== null) this.events.model?.(choice.route.label);
    this.trace?.reroute(choice.route);
  }

  /** Begins another attempt, with another route, and with a bill of its own. */
  retryWith(choice: RouteChoice, prepared: Prepared): void {
    this.reroute(choice);
    this.prepared = prepared;
    this.#attemptMs = this.#clock.monotonicMs();
    this.#charge = noCharge;
    this.#reportedModel = null;
  }

  get ticket(): Ticket {
    return admitted(this.#ticket);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get launch(): LaunchOptions {
    return admitted(this.prepared).launch;
  }

  get turn(): ConversationTurn | null {
    return admitted(this.prepared).turn;
  }

  /** Conversation of the turn; null for a job without one, and for a waiting background job that begins one. */
  get conversationId(): string | null {
    const hasTurn = this.background === null ? this.prepared !== null : this.hasStarted;
    return hasTurn ? (this.turn?.id ?? null) : this.request.conversationId;
  }

  get chain(): JobChain | null {
    return admitted(this.prepared).chain;
  }

  /** Whether a later request may continue this one. No request continues a line of a file. */
  get isContinuable(): boolean {
    const isLine = this.background?.accepted.form.line !== undefined;
    return this.turn !== null || (this.chain !== null && !isLine);
  }

  /**
   * State of the conversation for which a process may be waiting; null for a first message, or for a job without a
   * conversation.
   */
  get continues(): ConversationState | null {
    return this.#withLaunch(this.turn?.state ?? this.chain?.before ?? null);
  }

  /**
   * Returns the state after an answer with this whole text, under which the process can be reused. `conversation`: the
   * conversation including this turn.
   */
  stateAfter(text: string, { calls = [], isWaiting }: Answered, conversation: ConversationSnapshot | null) {
    const chainState = () => this.chain?.after(text, calls, isWaiting) ?? null;
    return this.#withLaunch(this.turn?.stateAt(conversation?.messageCount) ?? chainState());
  }

  #withLaunch(state: ConversationState | null): ConversationState | null {
    return state && { ...state, launch: this.launch };
  }

  get isWaiting(): boolean {
    return this.#start === null && !this.hasEnded;
  }

  get isRunning(): boolean {
    return this.#start !== null && !this.hasEnded;
  }

  get hasStarted(): boolean {
    return this.#start !== null;
  }

  /** Time when the job got its slot, in milliseconds since the epoch; null while it waits. */
  get startedAt(): number | null {
    return this.#start?.at ?? null;
  }

  /** Milliseconds from arrival to the slot; if the job still waits, to the present. */
  get queueMs(): number {
    return Math.round((this.#start?.monotonicMs ?? this.#clock.monotonicMs()) - this.#arrivedMs);
  }

  /** Milliseconds of waiting. For a background job, they count from its acceptance, on any host and in any service. */
  get waitedMs(): number {
    if (this.background === null) return this.queueMs;
    return Math.max(0, (this.startedAt ?? this.#clock.now()) - this.background.accepted.createdAt);
  }

  get executionMs(): number {
    return this.#start === null ? 0 : Math.round(this.#clock.monotonicMs() - this.#start.monotonicMs);
  }

  /** Queue position of the waiting job, and the reason for its wait. */
  get place(): { readonly position: number; readonly reason: WaitReason } {
    if (this.#ticket?.isWaiting !== true) return { position: 1, reason: 'slot' }; // accepted, or about to be retried
    return { position: Math.max(1, this.#ticket.position), reason: this.#ticket.reason };
  }

  /** Marks the job as running, and starts its execution time limit. */
  startJob(limitMs: number): void {
    this.#limitMs = limitMs;
    this.#attemptMs = this.#clock.monotonicMs();
    this.#start = { monotonicMs: this.#attemptMs, at: this.#clock.now() };
    this.limitTime(limitMs, () => tookTooLong(limitMs));
    this.events.writeStart(this.waitedMs);
  }

  /** Milliseconds until the execution time limit. */
  get leftMs(): number {
    return this.#limitMs - this.executionMs;
  }

  /** Milliseconds since the present route has the job; 0 while it waits. */
  get attemptMs(): number {
    return this.#start === null ? 0 : Math.round(this.#clock.monotonicMs() - this.#attemptMs);
  }

  /** Adds resources that a process has used; null if they are not measured. */
  addUsage(used: CgroupUsage | null): void {
    if (used === null) return;
    const { processorMs, peakMemoryBytes } = this.#usage;
    this.#usage = {
      processorMs: (processorMs ?? 0) + used.processorMs,
      peakMemoryBytes:
        used.peakMemoryBytes === null ? peakMemoryBytes : Math.max(peakMemoryBytes ?? 0, used.peakMemoryBytes),
    };
  }

  /** Adds the charge of an ended turn. */
  addCharge(charge: Charge): void {
    this.#charge = addCharges(this.#charge, charge);
  }

  get searchesLeft(): number {
    return Math.max(0, this.maxSearches - this.#searches);
  }

  addSearches(count: number): void {
    this.#searches += count;
    this.addCharge({ ...noCharge, searches: count });
  }

  /** Notes the public name of the model that the CLI has named. */
  noteModel(name: string): void {
    this.#reportedModel = name;
    this.events.model?.(name);
  }

  get bill(): Bill {
    return {
      ...this.#charge,
      requested: this.route.label ?? '',
      reported: this.#reportedModel,
      ...this.route.cli.names,
      modelMs: this.attemptMs,
    };
  }

  cut(reason: Error): void {
    this.#controller.abort(reason);
  }

  /** Gives back the turn, and removes limits and listeners, after the program has answered or failed. */
  closeJob(): void {
    this.isClosed = true;
    this.#stopTimer();
    this.#caller.removeEventListener('abort', this.#onCallerAbort);
    this.chain?.closeChain();
    this.turn?.[Symbol.dispose]();
  }

  /** Ends the job for its readers. */
  end(end: JobEnd): void {
    this.hasEnded = true;
    this.events.writeEnd(end);
  }

  /** Figures of the end: times, used resources, and the models that could not answer. */
  get figures() {
    const { queueMs, executionMs } = this;
    const fallback = passedModels(this.choice);
    return { queueMs, executionMs, ...this.#usage, ...(fallback.length > 0 && { fallback }) };
  }

  /** Ends the job with this error after this time, instead of any earlier limit. */
  limitTime(limitMs: number, reason: () => Error): void {
    this.#stopTimer();
    this.#stopTimer = this.#clock.after(limitMs, () => this.cut(reason()));
  }
}

function tookTooLong(limitMs: number): RelayError {
  return new RelayError('timeout', `the model took longer than ${limitMs} ms (MODEL_API_TIMEOUT)`);
}

function admitted<T>(part: T | null): T {
  if (part === null) throw new Error('the job has not been admitted');
  return part;
}
