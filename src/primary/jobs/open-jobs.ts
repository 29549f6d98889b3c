import type { ModelCli } from '../cli/model-cli.js';
import type { WaitingJob } from '../cli/pool/standby-keeper.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { ModelRouter } from '../cli/route.js';
import type { Job } from './job.js';
import { tenantOf } from './job-processes.js';
import type { Ticket } from './ticket.js';
import type { WaitingRoom } from './waiting-room.js';

/** Admitted jobs, until their last process has exited. Each is counted for the account of its route. */
export class OpenJobs {
  readonly #room: Pick<WaitingRoom, 'upcoming' | 'limits'>;
  /** Open jobs by their tickets, because a background job that is tried again may get another one before its processes have exited. */
  readonly #jobs = new Map<Ticket, { readonly job: Job; count: Disposable }>();

  readonly #router: Pick<ModelRouter, 'recordJob'>;

  constructor(room: Pick<WaitingRoom, 'upcoming' | 'limits'>, router: Pick<ModelRouter, 'recordJob'>) {
    this.#room = room;
    this.#router = router;
  }

  addJob(job: Job): void {
    this.#jobs.set(job.ticket, { job, count: this.#count(job) });
  }

  removeJob(ticket: Ticket): void {
    this.#jobs.get(ticket)?.count[Symbol.dispose]();
    this.#jobs.delete(ticket);
  }

  /** Counts a job for the account of another route. */
  recount(job: Job): void {
    const open = this.#jobs.get(job.ticket);
    if (open === undefined) return;
    open.count[Symbol.dispose]();
    open.count = this.#count(job);
  }

  #count({ route, request }: Job): Disposable {
    this.#router.recordJob(route, request);
    return route.cli.countJob();
  }

  get all(): readonly Job[] {
    return [...this.#jobs.values()].map(({ job }) => job);
  }

  get waiting(): readonly Job[] {
    return this.all.filter((job) => job.isWaiting);
  }

  /** The jobs that hold a slot, longest running first. */
  get running(): readonly Job[] {
    return this.all.filter((job) => job.hasStarted).sort((a, b) => b.executionMs - a.executionMs);
  }

  /** The open jobs of callers, newest first. */
  get callers(): readonly Job[] {
    return this.all.filter((job) => job.background === null && !job.hasEnded).sort((a, b) => b.number - a.number);
  }

  /** Returns the jobs for this CLI among the next jobs to get a slot. One job is considered for each slot. */
  nextJobs(cli: ModelCli): WaitingJob[] {
    return this.#room.upcoming(this.#room.limits.maxActive).flatMap((ticket) => {
      const job = this.#jobs.get(ticket)?.job;
      if (job?.route.cli !== cli) return [];
      return [{ launch: job.launch, conversation: job.continues, tenant: tenantOf(job) }];
    });
  }

  /** Conversations that waiting jobs will continue. */
  get awaited(): ReadonlySet<string> {
    return new Set(this.waiting.flatMap(({ continues }) => continues?.id ?? []));
  }

  /** Whether a process waits for exactly this turn, and no other job continues its conversation. */
  isFree(state: ConversationState, { pool }: ModelCli): boolean {
    return pool.hasSessionFor(state) && !this.all.some((job) => job.continues?.id === state.id);
  }

  /** Ends all jobs with this reason. */
  cutAll(reason: Error): void {
    for (const job of this.all) job.cut(reason);
  }
}
