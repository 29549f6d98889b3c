import type { Clock } from '../../shared/clock.js';
import type { ConversationSnapshot } from '../../shared/conversation.js';
import { isDefect, type RelayError } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import type { Launch, TurnEnd } from '../cli/adapter.js';
import { type ModelChoice, modelFor, narrowed } from '../cli/models.js';
import type { WaitingJob } from '../cli/pool/caretaker.js';
import type { CliLease } from '../cli/pool/process-pool.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { TextSink } from '../cli/process/open-turn.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import { type CountTokens, TurnRecord } from '../conversations/turn-record.js';
import type { Breaker } from '../limits/breaker.js';
import { Job, refusedEnd } from './job.js';
import { JobStream } from './job-stream.js';
import type { SlotQueue } from './slot-queue.js';

export interface JobLimits {
  readonly queueTimeoutMs: number;
  readonly executionMs: number;
}

/** What a job needs of a CLI process. */
export type JobCli = Pick<CliLease, 'turn' | 'usage' | 'release'>;

export interface JobObserver {
  /** A job has its slot, after this time in the queue. */
  jobStarted(queueMs: number): void;
  /** The first text of an answer has come, this long after the job got its slot. */
  firstDelta(request: JobRequest, ms: number): void;
  /** Called exactly once for each admitted job. */
  jobEnded(request: JobRequest, end: JobEnd, hadSlot: boolean): void;
  /** A job failed because of a defect of ours. */
  jobBroke(thrown: unknown): void;
}

export interface JobResources {
  readonly slots: SlotQueue;
  readonly breaker: Pick<Breaker, 'refusal' | 'admitted' | 'ended'>;
  readonly conversations: ConversationStore;
  /** As `ModelCli.acquire`. */
  readonly acquireCli: (launch: Launch, of: ConversationState | null, signal: AbortSignal) => Promise<JobCli>;
  readonly countTokens: CountTokens;
  /** The models that this client may name; null: it may name all. */
  readonly modelsOf: (client: string) => readonly string[] | null;
  readonly observer: JobObserver;
  readonly clock: Clock;
}

/** Owns the jobs from admission to their one outcome. */
export class JobRunner {
  readonly #resources: JobResources;
  readonly #models: ModelChoice;
  readonly #limits: JobLimits;
  readonly #open = new Map<Job['ticket'], Job>();

  constructor(resources: JobResources, models: ModelChoice, limits: JobLimits) {
    this.#resources = resources;
    this.#models = models;
    this.#limits = limits;
  }

  /**
   * Admits the job at once, or throws: `validation_error` for a model or a conversation that can't be used,
   * `concurrency_limited`. What was admitted ends with exactly one `job-end`; that is all there is of a job that the
   * breaker holds back.
   */
  run(request: JobRequest, caller: AbortSignal): JobStream {
    const { breaker } = this.#resources;
    const refusal = breaker.refusal(request);
    if (refusal !== null) return this.#refuse(request, refusal);
    const job = this.#admit(request, caller);
    breaker.admitted(request);
    this.#open.set(job.ticket, job);
    void this.#perform(job);
    return job.stream;
  }

  /** How long each running job has had its slot, milliseconds, longest first. */
  get ages(): number[] {
    const running = [...this.#open.values()].filter((job) => job.hasStarted);
    return running.map(({ executionMs }) => executionMs).sort((a, b) => b - a);
  }

  /** The jobs that are next to get a slot, as many as there are slots. */
  get next(): WaitingJob[] {
    const { slots } = this.#resources;
    return slots.next(slots.limits.maxActive).flatMap((ticket) => {
      const job = this.#open.get(ticket);
      return job === undefined ? [] : [{ launch: job.launch, conversation: job.turn?.state ?? null }];
    });
  }

  /** Ends every job that waits or runs, for this reason. */
  cutAll(reason: Error): void {
    for (const job of this.#open.values()) job.cut(reason);
  }

  /** Ends every job that waits and that the breaker holds back now. */
  cutHeld(): void {
    for (const job of this.#open.values()) {
      const refusal = job.hasStarted ? null : this.#resources.breaker.refusal(job.request);
      if (refusal !== null) job.cut(refusal);
    }
  }

  #refuse(request: JobRequest, refusal: RelayError): JobStream {
    const stream = new JobStream(request.isStreamed);
    const end = refusedEnd(refusal);
    stream.end(end);
    this.#resources.observer.jobEnded(request, end, false);
    return stream;
  }

  #admit(request: JobRequest, caller: AbortSignal): Job {
    const { slots, conversations, clock } = this.#resources;
    const { operation, conversationId, client, system, text } = request;
    const model = modelFor(request.model, narrowed(this.#models, this.#resources.modelsOf(client)));
    const isChat = operation === 'chat';
    const turn = isChat ? conversations.turn(conversationId, client, system, Buffer.byteLength(text)) : null;
    const bytes = Buffer.byteLength(text) + Buffer.byteLength(system ?? '');
    const ticket = turn?.mustWait ? slots.park(client, bytes) : slots.admit(client, bytes);
    turn?.open();
    const launch = { model, system: turn === null ? system : turn.system };
    return new Job({ request, launch, ticket, turn }, caller, clock);
  }

  /**
   * The whole story of a job. The caller gets the end before the processes are gone, and the conversation is free for its
   * next turn; the slot is free only when the last process has gone.
   */
  async #perform(job: Job): Promise<void> {
    const { acquireCli, observer } = this.#resources;
    let cli: JobCli | null = null;
    let kept: ConversationState | null = null;
    try {
      await this.#untilGranted(job);
      job.start(this.#limits.executionMs);
      observer.jobStarted(job.queueMs);
      cli = await acquireCli(job.launch, job.turn?.state ?? null, job.signal);
      const { end, conversation } = await this.#answer(job, cli);
      kept = job.turn?.stateAt(conversation?.messageCount) ?? null;
      this.#end(job, job.done(end, job.launch.model ?? this.#models.label, conversation));
    } catch (error) {
      if (isDefect(error)) observer.jobBroke(error);
      this.#end(job, job.failed(error));
    } finally {
      await cli?.release(kept).catch((error) => observer.jobBroke(error));
      this.#open.delete(job.ticket);
      job.ticket.release();
    }
  }

  /** Waits for the earlier turns of the same conversation, then for a slot. */
  async #untilGranted(job: Job): Promise<void> {
    const { ticket, turn, stream, signal } = job;
    job.limitWaiting(this.#limits.queueTimeoutMs);
    ticket.onPosition = (position) => stream.queued(position);
    if (ticket.isWaiting) stream.queued(ticket.position);
    void turn?.mine(signal).then(
      () => ticket.unpark(),
      () => {}, // the same signal ends the ticket's waiting
    );
    await ticket.granted(signal);
  }

  async #answer(job: Job, cli: JobCli): Promise<{ end: TurnEnd; conversation: ConversationSnapshot | null }> {
    const { request, launch, turn, signal } = job;
    const record = turn && new TurnRecord(turn, request, this.#resources.countTokens);
    const input = { text: request.text, system: launch.system, history: turn?.history ?? [] };
    const end = await cli.turn(input, this.#sinkOf(job, record), signal).finally(() => {
      job.usage = cli.usage() ?? job.usage;
    });
    return { end, conversation: record && (await record.commit(end.text, signal)) };
  }

  /** Where the text of the answer goes: to the reader, and into the record of the turn. */
  #sinkOf(job: Job, record: TurnRecord | null): TextSink {
    const { stream, request } = job;
    let hasBegun = false;
    return {
      write: (text) => {
        if (!hasBegun) this.#resources.observer.firstDelta(request, job.executionMs);
        hasBegun = true;
        record?.add(text);
        stream.write(text);
      },
      get isFull() {
        return stream.isFull;
      },
      room: () => stream.room(),
    };
  }

  /** The one end of a job. */
  #end(job: Job, endOfTurn: JobEnd): void {
    const { breaker, observer } = this.#resources;
    job.close();
    job.turn?.[Symbol.dispose]();
    const end = breaker.ended(job.request, endOfTurn, job.hasStarted);
    job.stream.end(end);
    observer.jobEnded(job.request, end, job.hasStarted);
  }
}
