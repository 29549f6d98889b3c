import type { ClientText } from '../../shared/client.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { Route } from '../cli/route.js';
import type { Admission } from './admission.js';
import type { Job } from './job.js';
import { failedEnd } from './job-end.js';
import type { JobFeatures } from './job-features.js';
import type { JobObserver } from './job-observer.js';
import type { JobProcesses } from './job-processes.js';
import type { OpenJobs } from './open-jobs.js';
import { accountChanged, accountRemoved, type RouteChoice } from './route-choice.js';
import type { WaitingRoom } from './waiting-room.js';

type MayServe = (cli: ModelCli, client: ClientText) => boolean;

interface MoveParts {
  readonly open: OpenJobs;
  readonly room: Pick<WaitingRoom, 'move' | 'hasRoomAt'>;
  readonly features: Pick<JobFeatures, 'nextRoute'>;
  readonly admission: Admission;
  readonly observer: JobObserver;
}

/** Moves jobs to other routes: waiting ones, and those whose model could not begin to answer. */
export class JobMoves {
  readonly #parts: MoveParts;

  constructor(parts: MoveParts) {
    this.#parts = parts;
  }

  /**
   * Moves waiting jobs that another route can serve better at present: because a breaker has opened or closed, or because
   * an account may no longer serve their client. Ends the jobs of callers that no route can serve. A background job is
   * admitted again.
   */
  moveWaiting(mayServe: MayServe): void {
    for (const job of this.#parts.open.waiting) {
      const { request, route, background } = job;
      const choice = this.#parts.admission.chooseRoute(request, background !== null);
      const isRefused = route.cli.health.circuits.refusalOf(job) !== null;
      const mayStay = mayServe(route.cli, request.client);
      const isSame = choice.route.cli === route.cli && choice.route.adapterModel === route.adapterModel;
      if (background !== null) {
        if (!mayStay || (isRefused && !isSame)) job.cut(accountChanged());
      } else if (!mayStay || isRefused) this.#moveCaller(job, choice, mayServe);
    }
  }

  /** Moves a job of a caller, or ends it alone if the program of its route does not support its request. */
  #moveCaller(job: Job, choice: RouteChoice, mayServe: MayServe): void {
    const { request } = job;
    const { route } = choice;
    const refusal = route.cli.health.circuits.refusalOf({ request, route });
    try {
      if (!mayServe(route.cli, request.client)) throw accountRemoved();
      if (refusal !== null) throw refusal;
      this.#moveTo(job, choice);
    } catch (error) {
      job.cut(error as Error);
    }
  }

  /**
   * Returns the choice after the model of a job has failed; null if no other model may or can answer. Another model would
   * not get messages that this one has got.
   */
  nextChoice(job: Job, error: unknown): RouteChoice | null {
    if (job.hasOutput || job.hasAdditions || job.signal.aborted) return null;
    const { room, features, admission } = this.#parts;
    const hasRoom = (route: Route) =>
      admission.isSupported(job.request, route) && room.hasRoomAt(job.ticket, route.cli);
    return features.nextRoute(job, error, hasRoom);
  }

  /**
   * Moves a job whose model could not begin to answer to the next one. Resolves when its processes have exited; rejects
   * with the error if no other model can answer.
   */
  async moveFailed(job: Job, processes: JobProcesses, error: unknown): Promise<null> {
    if (this.nextChoice(job, error) === null) throw error;
    const { request, route, bill } = job;
    const end = { ...failedEnd(job, error), executionMs: bill.modelMs };
    await processes.release(null);
    const next = this.nextChoice(job, error);
    if (next === null) throw error;
    route.cli.health.recordJobEnd({ request, route }, end, true);
    this.#parts.observer.attemptEnded(request, end, bill);
    this.#moveTo(job, next);
    return null;
  }

  /** Moves a job to another route, with its place or its slot. */
  #moveTo(job: Job, choice: RouteChoice): void {
    const { open, room, admission } = this.#parts;
    const { route } = choice;
    const { route: before, choice: choiceBefore } = job;
    const prepared = admission.prepareFor(job, route);
    before.cli.health.circuits.recordEnd(job);
    job.retryWith(choice, prepared);
    open.recount(job);
    route.cli.health.circuits.recordAdmission(job);
    room.move(job.ticket, route.cli);
    this.reportMove(job, choiceBefore.passed.length);
  }

  /** Reports the models that could not answer, except the first ones, which were reported before. */
  reportMove({ request, choice }: Job, reported: number): void {
    for (const { route, reason } of choice.passed.slice(reported))
      this.#parts.observer.jobMoved(request, route, choice.route, reason);
  }
}
