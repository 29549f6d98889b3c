import type { Clock } from '../../shared/clock.js';
import { isDefect } from '../../shared/errors.js';
import type { JobEnd, JobEvent, JobRequest } from '../../shared/job.js';
import type { Launch } from '../cli/adapter.js';
import type { ConversationState } from '../cli/live-sessions.js';
import type { CliLease } from '../cli/shelf.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { ConversationTurn } from '../conversations/conversation-turn.js';
import { type CountTokens, TurnRecord } from '../conversations/turn-record.js';
import { type ModelChoice, modelFor } from '../model-choice.js';
import { buffered } from './buffered.js';
import { gathered } from './gathered.js';
import { Job } from './job.js';
import type { SlotQueue, Ticket } from './slot-queue.js';

export interface JobLimits {
  readonly queueTimeoutMs: number;
  readonly executionMs: number;
}

/** What a job needs of a CLI process: one turn, and its end or its stay with the conversation. */
export type JobCli = Pick<CliLease, 'turn' | 'keepFor'> & AsyncDisposable;

/** A CLI process for a launch and, where there is one already, its conversation; rejects with `spawn_error` or the signal's reason. */
export type TakeCli = (launch: Launch, conversation: ConversationState | null, signal: AbortSignal) => Promise<JobCli>;

export interface JobObserver {
  /** A job has its slot, after this time in the queue. */
  jobStarted(queueMs: number): void;
  /** The first text of an answer has come, this long after the job got its slot. */
  firstDelta(request: JobRequest, ms: number): void;
  /** Every admitted job ends here, exactly once. */
  jobEnded(request: JobRequest, end: JobEnd, hadSlot: boolean): void;
  /** A job ended for a reason that is a defect of ours. */
  jobBroke(thrown: unknown): void;
}

/** Events a job may run ahead of its reader. */
const maxEventsAhead = 2;

/** What the runner takes from others. */
export interface JobResources {
  readonly slots: SlotQueue;
  readonly conversations: ConversationStore;
  readonly takeCli: TakeCli;
  readonly countTokens: CountTokens;
  readonly observer: JobObserver;
  readonly clock: Clock;
}

/** A job that was admitted, with everything it holds. */
interface Admitted {
  readonly request: JobRequest;
  readonly launch: Launch;
  readonly ticket: Ticket;
  readonly job: Job;
  /** For `chat`: its turn on the conversation. */
  readonly turn: ConversationTurn | null;
}

/** Owns the jobs from admission to their one outcome. */
export class JobRunner {
  readonly #resources: JobResources;
  readonly #models: ModelChoice;
  readonly #limits: JobLimits;
  readonly #open = new Set<Job>();

  constructor(resources: JobResources, models: ModelChoice, limits: JobLimits) {
    this.#resources = resources;
    this.#models = models;
    this.#limits = limits;
  }

  /**
   * Admits the job at once, or throws: `validation_error` for a model or a conversation that can't be had,
   * `concurrency_limited`. What was admitted yields one `job-end`; only after the last process has gone the slot is free.
   */
  run(request: JobRequest, caller: AbortSignal): AsyncIterable<JobEvent> {
    const admitted = this.#admit(request, caller);
    this.#open.add(admitted.job);
    const events = this.#perform(admitted);
    return buffered(request.wantsPositions ? events : gathered(events), admitted.job.signal, maxEventsAhead);
  }

  /** How long each running job has had its slot, milliseconds, longest first. */
  get ages(): number[] {
    const running = [...this.#open].filter((job) => job.hasStarted);
    return running.map(({ executionMs }) => executionMs).sort((a, b) => b - a);
  }

  /** Ends every job that waits or runs, for this reason. */
  cutAll(reason: Error): void {
    for (const job of this.#open) job.cut(reason);
  }

  #admit(request: JobRequest, caller: AbortSignal): Admitted {
    const { slots, conversations, clock } = this.#resources;
    const { operation, conversationId, owner, client, system, text } = request;
    const model = modelFor(request.model, this.#models);
    const bytes = bytesOf(request);
    const turn =
      operation === 'chat' ? conversations.turn(conversationId, owner, system, Buffer.byteLength(text)) : null;
    const ticket = turn?.mustWait ? slots.park(client, bytes) : slots.admit(client, bytes);
    turn?.open();
    const launch = { model, system: turn === null ? system : turn.system };
    return { request, launch, ticket, turn, job: new Job(clock, caller) };
  }

  async *#perform(admitted: Admitted): AsyncGenerator<JobEvent> {
    using _slot = admitted.ticket;
    using _turn = admitted.turn;
    using job = admitted.job;
    let hasEnded = false;
    try {
      for await (const event of this.#endingWell(job, this.#execute(admitted))) {
        if (hasEnded) continue; // the process broke as it was ended: the job has its outcome already
        hasEnded = event.type === 'job-end';
        if (event.type === 'job-end') this.#ended(admitted, event);
        yield event;
      }
    } finally {
      this.#open.delete(job);
    }
  }

  /** The conversation is free at once, the slot only when the last process has gone. */
  #ended({ request, turn, job }: Admitted, end: JobEnd): void {
    turn?.[Symbol.dispose]();
    this.#resources.observer.jobEnded(request, end, job.hasStarted);
  }

  async *#execute(admitted: Admitted): AsyncGenerator<JobEvent> {
    const { request, launch, ticket, turn, job } = admitted;
    job.limitWaiting(this.#limits.queueTimeoutMs);
    void turn?.mine(job.signal).then(
      () => ticket.unpark(),
      () => {}, // the ticket is told by the same signal
    );
    if (request.wantsPositions) yield* positionsOf(ticket, job);
    await ticket.granted(job.signal);
    job.start(this.#limits.executionMs);
    this.#resources.observer.jobStarted(job.queueMs);
    yield { type: 'job-start', queueMs: job.queueMs };
    await using cli = await this.#resources.takeCli(launch, turn?.state ?? null, job.signal);
    // The end is told inside this scope: the caller has it before the process tree is gone.
    yield* this.#endingWell(job, this.#answer(cli, admitted));
  }

  async *#answer(cli: JobCli, { request, launch, turn, job }: Admitted): AsyncGenerator<JobEvent> {
    const record = turn && new TurnRecord(turn, request, this.#resources.countTokens);
    const history = turn?.history ?? [];
    let hasSpoken = false;
    for await (const event of cli.turn({ text: request.text, system: launch.system, history }, job.signal)) {
      if (event.type === 'text-delta') {
        if (!hasSpoken) this.#resources.observer.firstDelta(request, job.executionMs);
        hasSpoken = true;
        record?.add(event.text);
      }
      const conversation = event.type === 'turn-end' && record ? await record.commit(event.text, job.signal) : null;
      if (conversation !== null) cli.keepFor(() => turn?.stateAt(conversation.messageCount) ?? null);
      yield event.type === 'turn-end' ? job.done(event, launch.model ?? this.#models.label, conversation) : event;
    }
  }

  /** What is thrown becomes the job's end. */
  async *#endingWell(job: Job, events: AsyncIterable<JobEvent>): AsyncGenerator<JobEvent> {
    try {
      yield* events;
    } catch (error) {
      if (isDefect(error)) this.#resources.observer.jobBroke(error);
      yield job.failed(error);
    }
  }
}

async function* positionsOf(ticket: Ticket, job: Job): AsyncGenerator<JobEvent> {
  for await (const position of ticket.positions(job.signal)) yield { type: 'job-queued', position };
}

function bytesOf(request: JobRequest): number {
  return Buffer.byteLength(request.text) + Buffer.byteLength(request.system ?? '');
}
