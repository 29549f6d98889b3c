import type { Clock } from '../shared/clock.js';
import { Cancelled, invalid, RelayError } from '../shared/errors.js';
import type { JobEnd, JobEvent, JobRequest } from '../shared/job.js';
import { buffered } from './buffered.js';
import type { Launch } from './cli/adapter.js';
import type { CliProcess } from './cli/cli-process.js';
import { Job } from './job.js';
import type { SlotQueue, Ticket } from './slot-queue.js';

export interface JobLimits {
  readonly queueTimeoutMs: number;
  readonly executionMs: number;
}

export interface ModelChoice {
  /** Model of a request that names none; null leaves it to the CLI. */
  readonly fallback: string | null;
  /** Models that a request may name; null allows any. */
  readonly allowed: readonly string[] | null;
  /** What to call the model of an answer that doesn't say. */
  readonly label: string | null;
}

/** What a job needs of a CLI process: one turn, and its end. */
export type JobCli = Pick<CliProcess, 'turn'> & AsyncDisposable;

/** Starts a CLI process for a launch; rejects with `spawn_error` or the signal's reason. */
export type StartCli = (launch: Launch, signal: AbortSignal) => Promise<JobCli>;

export interface JobObserver {
  /** Every admitted job ends here, exactly once. */
  jobEnded(request: JobRequest, end: JobEnd): void;
  /** A job ended for a reason that is a defect of ours. */
  jobBroke(thrown: unknown): void;
}

/** Events a job may run ahead of its reader. */
const maxEventsAhead = 8;

/** Owns the jobs from admission to their one outcome. */
export class JobRunner {
  readonly #slots: SlotQueue;
  readonly #startCli: StartCli;
  readonly #models: ModelChoice;
  readonly #limits: JobLimits;
  readonly #observer: JobObserver;
  readonly #clock: Clock;
  readonly #open = new Set<Job>();

  constructor(
    slots: SlotQueue,
    startCli: StartCli,
    models: ModelChoice,
    limits: JobLimits,
    observer: JobObserver,
    clock: Clock,
  ) {
    this.#slots = slots;
    this.#startCli = startCli;
    this.#models = models;
    this.#limits = limits;
    this.#observer = observer;
    this.#clock = clock;
  }

  /**
   * Admits the job at once, or throws: `validation_error` for a model that can't be had, `concurrency_limited`.
   * What was admitted yields one `job-end`; only after the last process has gone the slot is free.
   */
  run(request: JobRequest, caller: AbortSignal): AsyncIterable<JobEvent> {
    const launch = this.#launchOf(request);
    const ticket = this.#slots.admit(request.client, bytesOf(request));
    const job = new Job(this.#clock, caller);
    this.#open.add(job);
    return buffered(this.#perform(request, launch, ticket, job), job.signal, maxEventsAhead);
  }

  /** Ends every job that waits or runs, for this reason. */
  cutAll(reason: Error): void {
    for (const job of this.#open) job.cut(reason);
  }

  #launchOf({ model, system }: JobRequest): Launch {
    const { allowed, fallback } = this.#models;
    if (model !== null && allowed !== null && !allowed.includes(model)) {
      throw invalid('model', `must be one of ${allowed.join(', ')}`);
    }
    return { model: model ?? fallback, system };
  }

  async *#perform(request: JobRequest, launch: Launch, ticket: Ticket, job: Job): AsyncGenerator<JobEvent> {
    using _slot = ticket;
    using _limits = job;
    let hasEnded = false;
    try {
      for await (const event of this.#endingWell(job, this.#execute(request, launch, ticket, job))) {
        if (hasEnded) continue; // the process broke as it was ended: the job has its outcome already
        if (event.type === 'job-end') this.#observer.jobEnded(request, event);
        hasEnded = event.type === 'job-end';
        yield event;
      }
    } finally {
      this.#open.delete(job);
    }
  }

  async *#execute(request: JobRequest, launch: Launch, ticket: Ticket, job: Job): AsyncGenerator<JobEvent> {
    job.limitWaiting(this.#limits.queueTimeoutMs);
    await ticket.granted(job.signal);
    job.start(this.#limits.executionMs);
    yield { type: 'job-start', queueMs: job.queueMs };
    await using cli = await this.#startCli(launch, job.signal);
    // The end is told inside this scope: the caller has it before the process tree is gone.
    yield* this.#endingWell(job, this.#answer(cli, request, launch, job));
  }

  async *#answer(cli: JobCli, request: JobRequest, launch: Launch, job: Job): AsyncGenerator<JobEvent> {
    const turn = { text: request.text, system: request.system, history: [] };
    for await (const event of cli.turn(turn, job.signal)) {
      yield event.type === 'turn-end' ? job.done(event, launch.model ?? this.#models.label) : event;
    }
  }

  /** What is thrown becomes the job's end. */
  async *#endingWell(job: Job, events: AsyncIterable<JobEvent>): AsyncGenerator<JobEvent> {
    try {
      yield* events;
    } catch (error) {
      if (!(error instanceof RelayError || error instanceof Cancelled)) this.#observer.jobBroke(error);
      yield job.failed(error);
    }
  }
}

function bytesOf(request: JobRequest): number {
  return Buffer.byteLength(request.text) + Buffer.byteLength(request.system ?? '');
}
