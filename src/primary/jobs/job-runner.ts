import { orAborted } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import type { Config } from '../../shared/config/config.js';
import { isDefect, RelayError, retryAfter, toRelayError } from '../../shared/errors.js';
import { isolated } from '../../shared/isolated.js';
import type { FailedOutcome, JobEnd, JobFailed, JobRequest, ToolRound, WaitReason } from '../../shared/job.js';
import { KnownModels } from '../cli/model-catalog.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { Redactor } from '../cli/process/redactor.js';
import type { Route } from '../cli/route.js';
import { TurnRecord, type TurnResources } from '../conversations/conversation-turn.js';
import type { SeenClients } from '../health/evidence.js';
import { storedFigures } from '../store/contract/stored-text.js';
import type { SchemaChecker } from '../threads/schema-checker.js';
import { Admission, type AdmissionResources, orGivenBack } from './admission.js';
import type { Answered } from './answered.js';
import { Answering, type AnsweringParts } from './answering.js';
import type { Attempt, BackgroundPart } from './background-part.js';
import { hasCharge, noBill } from './bill.js';
import { Charges } from './charges.js';
import { Job } from './job.js';
import { doneEnd, failedEnd, isRefused, mustRetry, redactedEnd, refusedEnd } from './job-end.js';
import { JobMoves } from './job-moves.js';
import type { JobObserver } from './job-observer.js';
import { JobProcesses } from './job-processes.js';
import { JobStream } from './job-stream.js';
import { OpenJobs } from './open-jobs.js';
import { RetryAdvice } from './retry-advice.js';
import { passedModels, type RouteChoice } from './route-choice.js';
import { SamplingRules } from './sampling-rules.js';
import type { Ticket } from './ticket.js';
import type { SearchGrant } from './web-searcher.js';

export interface JobLimits {
  readonly queueTimeoutMs: number;
  readonly executionMs: number;
  readonly maxOutputBytes: number;
  /** Whether error messages to callers include stderr of the program. */
  readonly exposeStderr: boolean;
  /** Whether clients may set sampling parameters. */
  readonly sampling: Config['sampling'];
}

export interface JobResources extends TurnResources, Omit<AdmissionResources, 'openJobs'> {
  readonly clis: readonly ModelCli[];
  /** Clients that have sent a job to any CLI. */
  readonly clients: SeenClients;
  readonly schemas: Pick<SchemaChecker, 'readValue'>;
  readonly observer: JobObserver;
  readonly redactor: Pick<Redactor, 'redact'>;
  /** Explains an unknown model by listing the names that a client may use instead. */
  readonly knownModels: Pick<KnownModels, 'explain'>;
  /** Throws if the job must be refused. Called when a job has its slot. */
  readonly checkStart: (request: JobRequest, route: Route) => void;
}

/** Runs all jobs from admission to their single outcome. */
export class JobRunner {
  readonly #resources: JobResources;
  readonly #observer: JobObserver;
  readonly #admission: Admission;
  readonly #limits: JobLimits;
  readonly #advice: RetryAdvice;
  readonly #memory: AnsweringParts['memory'];
  readonly openJobs: OpenJobs;
  readonly moves: JobMoves;
  #lastNumber = 0;

  constructor(resources: JobResources, limits: JobLimits) {
    this.#resources = resources;
    this.#observer = isolated(resources.observer, (thrown) => resources.observer.jobBroke(thrown));
    this.#advice = new RetryAdvice(resources.room.limits.maxActive);
    const { room, features } = resources;
    this.openJobs = new OpenJobs(room, resources.router);
    this.#admission = new Admission({ ...resources, openJobs: this.openJobs }, this.#advice);
    const moveParts = { open: this.openJobs, room, features, admission: this.#admission, observer: this.#observer };
    this.moves = new JobMoves(moveParts);
    const sampling = new SamplingRules(limits.sampling === 'on', resources.clock);
    this.#memory = { charges: new Charges(), sampling, isUsageUnknown: false };
    this.#limits = limits;
  }

  /** Estimated seconds until the present jobs are done. */
  get busySeconds(): number {
    const { room } = this.#resources;
    return this.#advice.seconds(room.active + room.waiting);
  }

  /**
   * Admits the job at once, or throws `validation_error` for an unusable model or conversation, or
   * `concurrency_limited`. An admitted job ends with exactly one `job-end`. If the breaker holds the job back, the
   * stream has only a `job-end`.
   */
  run(request: JobRequest, caller: AbortSignal): JobStream {
    const choice = this.#admission.chooseRoute(request, false);
    const { route } = choice;
    this.#recordRequest(request.client);
    const refusal = route.cli.health.circuits.refusalOf({ request, route });
    if (refusal !== null) return this.#refuseCaller(request, refusal);
    const stream = new JobStream(request.isStreamed);
    const job = this.#tryToAdmit(request, choice, stream, caller);
    this.moves.reportMove(job, 0);
    const session = job.chain && (job.chain.isLive ? 'live' : 'replay');
    this.#countRound(request, session ?? 'replay');
    route.cli.health.circuits.recordAdmission(job);
    const ignoresEffort = job.launch.effort !== request.effort;
    const ignores = this.#memory.sampling.ignored(request, route);
    const fallback = passedModels(choice);
    stream.admitted({
      ...{ session, ignoresEffort, ...(ignores.length > 0 && { ignores }), ...this.#admission.tierOf(request) },
      ...(job.chain && { model: route.label ?? request.model }),
      ...(fallback.length > 0 && { fallback }),
      ...(job.turn && { conversationId: job.turn.id }),
    });
    void this.perform(job);
    return stream;
  }

  /** Creates an accepted background job, without admitting it. */
  backgroundJob<B extends BackgroundPart>(request: JobRequest, background: B): Job<B> {
    const choice = this.#admission.chooseRoute(request, true);
    const { clock, features } = this.#resources;
    const trace = features.traceJob(request, choice, this.#observer.jobBroke);
    return new Job({ request, choice, events: background.log, background, trace }, background.signal, clock);
  }

  /**
   * Queues a background job without a time limit, behind the callers. With `isFirst`, it goes before other jobs of its
   * client. Throws like `run`, except for a full queue. Then `perform` must be called.
   */
  admitBackground(job: Job<BackgroundPart>, isFirst: boolean): void {
    const { request } = job;
    this.#recordRequest(request.client);
    job.reroute(this.#admission.chooseRoute(request, true));
    const { bytes, ...examined } = this.#admission.examine(request, job.route);
    const enter = () => this.#admission.enter(job, bytes, isFirst, () => this.#prepare(job));
    job.admit(++this.#lastNumber, { ...examined, chain: null }, enter);
    this.openJobs.addJob(job);
  }

  /** Ends the attempt of a background job that was not admitted because of this error. */
  refuseBackground(job: Job<BackgroundPart>, error: unknown): Attempt {
    return this.#conclude(job, refusedEnd(toRelayError(error)));
  }

  /** Prepares a background job that got its slot. */
  #prepare(job: Job): void {
    try {
      job.prepared = this.#admission.prepare(job);
      this.moves.reportMove(job, 0);
      job.route.cli.health.circuits.recordAdmission(job);
    } catch (error) {
      job.cut(error as Error);
    }
  }

  /** Returns the model of this job; null if only its CLI knows it. Throws like `run`, except for a full queue. */
  checkRequest(request: JobRequest): string | null {
    const route = this.#resources.router.route(request);
    this.#admission.examine(request, route);
    return route.label ?? request.model;
  }

  /**
   * Whether a background job would get a slot at once. With `isPatient`: whether it could at least wait in the queue.
   */
  mayStart({ request }: Pick<Job, 'request'>, isPatient: boolean): boolean {
    const { route } = this.#admission.chooseRoute(request, true);
    return this.#admission.mayStart({ request, route }, isPatient);
  }

  /** Reports an exception that is a defect of this service. */
  reportDefect(thrown: unknown): void {
    this.#observer.jobBroke(thrown);
  }

  /** Ends a job that was refused before its admission. */
  dismiss(request: JobRequest, reason: unknown): JobFailed {
    const end = refusedEnd(toRelayError(reason));
    if (!isRefused(end)) this.#observer.jobEnded(request, end, false, noBill);
    return end;
  }

  /** Records that the client sent a request, even if it is refused. */
  #recordRequest(client: ClientText): void {
    const { clients, clis } = this.#resources;
    const isSecond = clients.recordClient(client);
    // the failures behind an open circuit may be caused by the first client alone
    if (isSecond) for (const { health } of clis) health.circuits.tryAgain();
  }

  #refuseCaller(request: JobRequest, refusal: RelayError): JobStream {
    this.#admission.checkModel(request); // a wrong name of a model is the better reason
    const stream = new JobStream(request.isStreamed);
    stream.writeEnd(this.dismiss(request, refusal));
    return stream;
  }

  #tryToAdmit(request: JobRequest, choice: RouteChoice, events: JobStream, caller: AbortSignal): Job {
    try {
      const { clock, features } = this.#resources;
      const trace = features.traceJob(request, choice, this.#observer.jobBroke);
      const { ticket, prepared } = this.#admission.admit(request, choice.route);
      return orGivenBack([prepared.turn, ticket], () => {
        const job = new Job({ request, choice, events, background: null, trace }, caller, clock);
        job.admit(++this.#lastNumber, prepared, () => ticket);
        this.openJobs.addJob(job);
        return job;
      });
    } catch (error) {
      this.#countRound(request, 'refused');
      const { code, message } = toRelayError(error);
      if (code !== 'concurrency_limited') throw error;
      throw new RelayError(code, message, { retryAfterSeconds: this.#queueSeconds });
    }
  }

  #countRound(request: JobRequest, outcome: ToolRound): void {
    if (request.results !== undefined) this.#observer.toolRound(request, outcome);
  }

  /**
   * Runs an admitted job from its wait to its end. The caller gets the end before the processes have exited, and the
   * conversation accepts its next turn. The slot is freed only after the last process has exited. Never rejects.
   */
  async perform(job: Job): Promise<Attempt> {
    const processes = new JobProcesses(job, this.#resources.clis);
    const { ticket } = job; // a retried background job may get another ticket before its processes have exited
    let reusable: ConversationState | null = null;
    try {
      using grant = this.#resources.features.searcher?.grantFor(job) ?? null;
      const { end, state } = await this.#answer(job, processes, grant);
      reusable = state;
      return this.#end(job, end);
    } catch (error) {
      this.#observer.jobBroke(error);
      job.closeJob();
      const end = failedEnd(job, error);
      if (job.background === null) job.end(end);
      return { kind: 'ended', end };
    } finally {
      void this.#release(processes, reusable, ticket);
    }
  }

  /** Resolves with the end of a job, and with the state in which its process can be reused; null if it cannot. */
  async #answer(
    job: Job,
    processes: JobProcesses,
    grant: SearchGrant | null,
  ): Promise<{ end: JobEnd; state: ConversationState | null }> {
    const { checkStart, redactor } = this.#resources;
    let answering: Answering | null = null;
    try {
      await this.#untilGranted(job);
      checkStart(job.request, job.route);
      await job.background?.hooks.beforeStart();
      job.startJob(this.#limits.executionMs);
      this.#observer.jobStarted(job.queueMs);
      job.trace?.waited(job.waitedMs, null);
      if (job.request.earlier !== undefined)
        // only a job with a slot needs memory for this text
        job.request = await orAborted(this.#resources.features.readEarlier(job.request), job.signal);
      grant?.reserve();
      const record = job.turn && new TurnRecord(job.turn, job.request, this.#resources);
      let answered: Answered | null = null;
      while (answered === null) {
        answering = this.#answering(job, processes, record);
        answered = await answering.run().catch((error) => this.moves.moveFailed(job, processes, error));
      }
      if (answered.sizes !== undefined) this.#observer.sizesReported(job.route, answered.sizes);
      if (!answered.isCut) this.#observer.inputCounted(job.route, job.request, answered.usage.inputTokens);
      const marks = { ...(job.isInterrupted && { isInterrupted: true as const }), ...record?.marksFor(answered.text) };
      const figures = record && storedFigures(answered.model ?? job.route.label, answered.usage, marks);
      const conversation = record && (await record.commit(answered.text, job.signal, figures));
      const isOther = job.chain !== null && job.hasAdditions; // the client does not send the added messages again
      const isOver = answered.isCut || isOther || !job.isContinuable;
      const text = answered.text ?? answering?.sentText ?? '';
      const state = isOver ? null : job.stateAfter(text, answered, conversation);
      return { end: doneEnd(job, answered, conversation), state };
    } catch (error) {
      if (isDefect(error)) this.#observer.jobBroke(error);
      const failure = KnownModels.isUnknown(error) ? await this.#explained(error, job) : error;
      return { end: redactedEnd(failedEnd(job, failure, answering?.refusedAnswer), redactor), state: null };
    }
  }

  async #release(processes: JobProcesses, state: ConversationState | null, ticket: Ticket): Promise<void> {
    await processes.release(state).catch((error) => this.#observer.jobBroke(error));
    this.openJobs.removeJob(ticket);
    ticket.release();
  }

  #explained(error: RelayError, { request, signal }: Job): Promise<RelayError> {
    return orAborted(this.#resources.knownModels.explain(error, request.client), signal).catch(() => error);
  }

  async #untilGranted(job: Job): Promise<void> {
    const { room, clock } = this.#resources;
    const { ticket, events, signal, turn, background } = job;
    if (background === null) this.#admission.limitWait(job, this.#limits.queueTimeoutMs);
    const report = (position: number, reason: WaitReason) => {
      job.trace?.waits?.(position, reason);
      return events.writePosition?.(position, reason) === true;
    };
    ticket.onPosition = report;
    if (ticket.isWaiting && report(ticket.position, ticket.reason)) ticket.positionMs = clock.monotonicMs();
    const cut = (reason: Error) => job.cut(reason);
    if (background === null || background.isLeased) {
      turn?.ready(signal, cut).then(() => room.next(), cut); // has no effect if the same signal has ended the wait
    }
    await ticket.granted(signal);
  }

  #answering(job: Job, processes: JobProcesses, record: TurnRecord | null): Answering {
    const { schemas, features, countTokens } = this.#resources;
    const hasOtherRoute = (failure: RelayError) => this.moves.nextChoice(job, failure) !== null;
    const onFirstOutput = () => {
      job.hasOutput = true;
      this.#observer.firstDelta(job.request, job.executionMs);
      job.route.cli.health.circuits.recordAnswer(job);
    };
    const parts = { processes, schemas, features, countTokens, record, hasOtherRoute, onFirstOutput };
    return new Answering(job, { ...parts, memory: this.#memory, maxOutputBytes: this.#limits.maxOutputBytes });
  }

  /** Ends the turn of a job, exactly once. */
  #end(job: Job, endOfTurn: JobEnd): Attempt {
    job.closeJob();
    if (job.hasStarted) this.#advice.recordDuration(job.executionMs);
    const attemptEnd = { ...endOfTurn, executionMs: job.attemptMs };
    const hasProof = job.hasStarted && (endOfTurn.outcome !== 'ok' || job.hasOutput || !job.isInterrupted);
    const judged = job.route.cli.health.recordJobEnd(job, attemptEnd, hasProof);
    return this.#conclude(job, { ...judged, executionMs: endOfTurn.executionMs });
  }

  /**
   * Decides whether a job has ended with this attempt, and counts its end. Readers of a background job get the end when
   * it is stored. A job that was refused never reached a model, and is counted as a refused request.
   */
  #conclude(job: Job, end: JobEnd): Attempt {
    const { background, hasStarted } = job;
    const shown = this.#shown(end);
    if (background === null) job.end(shown);
    else if (mustRetry(end, hasStarted)) return { kind: 'retry', pausesAll: end.outcome === 'store_unavailable' };
    background?.log.seal();
    if (!isRefused(end) || (background === null && hasCharge(job.bill))) {
      if (!hasStarted) job.trace?.waited(job.waitedMs, end);
      this.#observer.jobEnded(job.request, end, hasStarted, job.bill);
    }
    return { kind: 'ended', end: shown };
  }

  /** Returns the end with the details that the caller may see. */
  #shown(end: JobEnd): JobEnd {
    if (end.outcome === 'ok') return end;
    const { stderr, ...failure } = end.failure;
    const isShown = stderr !== undefined && this.#limits.exposeStderr;
    const message = isShown ? `${failure.message}: ${stderr}` : failure.message;
    const retryAfterSeconds = this.#retryAfter(end.outcome) ?? failure.retryAfterSeconds;
    return { ...end, failure: { ...failure, message, retryAfterSeconds } };
  }

  /** Estimated seconds until the present waiting jobs have a slot. */
  get #queueSeconds(): number {
    return this.#advice.seconds(this.#resources.room.waiting);
  }

  #retryAfter(outcome: FailedOutcome): number | undefined {
    if (outcome === 'shutting_down') return retryAfter('drain', 0); // the drain deadline has passed
    return outcome === 'queue_timeout' ? this.#queueSeconds : undefined;
  }
}
