import { orAborted } from '../../shared/async.js';
import type { SwitchPosition } from '../../shared/config/variables.js';
import { isDefect, RelayError, retryAfter, toRelayError } from '../../shared/errors.js';
import type { FailedOutcome, JobEnd, JobFailed, JobRequest, ToolRound, WaitReason } from '../../shared/job.js';
import { KnownModels } from '../cli/model-catalog.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { WaitingJob } from '../cli/pool/standby-keeper.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { Redactor } from '../cli/process/redactor.js';
import type { Route } from '../cli/route.js';
import { TurnRecord, type TurnResources } from '../conversations/conversation-turn.js';
import type { SeenClients } from '../health/evidence.js';
import type { StoredResponses } from '../responses/stored-responses.js';
import { storedFigures } from '../store/contract/stored-text.js';
import { type Bill, noBill } from '../store/contract/usage.js';
import type { SchemaChecker } from '../threads/schema-checker.js';
import { Admission, type AdmissionResources } from './admission.js';
import { Answering, type AnsweringParts } from './answering.js';
import type { Attempt, BackgroundPart } from './background-part.js';
import { Charges } from './charges.js';
import { isRefused, Job, mustRetry, refusedEnd } from './job.js';
import { JobProcesses } from './job-processes.js';
import type { JobSpans } from './job-spans.js';
import { JobStream } from './job-stream.js';
import { SamplingRules } from './sampling-rules.js';
import type { Ticket } from './ticket.js';

export interface JobLimits {
  readonly queueTimeoutMs: number;
  readonly executionMs: number;
  /** Whether error messages to callers include stderr of the program. */
  readonly exposeStderr: boolean;
  /** Whether clients may offer tools. */
  readonly tools: SwitchPosition;
  /** Whether clients may set sampling parameters. */
  readonly sampling: SwitchPosition;
}

export interface JobObserver {
  /** Called when a client has sent tool results. */
  toolRound(request: JobRequest, outcome: ToolRound): void;
  /** Called when a job has its slot, with its time in the queue. */
  jobStarted(queueMs: number): void;
  /** Called at the first text of an answer, with the time since the job got its slot. */
  firstDelta(request: JobRequest, ms: number): void;
  /** Called exactly once for each admitted job. */
  jobEnded(request: JobRequest, end: JobEnd, hadSlot: boolean, bill: Bill): void;
  /** Called when a job failed because of a defect in this service. */
  jobBroke(thrown: unknown): void;
}

export interface JobResources extends TurnResources, AdmissionResources {
  readonly clis: readonly ModelCli[];
  /** Clients that have sent a job to any CLI. */
  readonly clients: SeenClients;
  readonly schemas: Pick<SchemaChecker, 'read'>;
  readonly responses: Pick<StoredResponses, 'text'>;
  readonly observer: JobObserver;
  readonly redactor: Pick<Redactor, 'redact'>;
  /** Explains an unknown model by listing the names that a client may use instead. */
  readonly knownModels: Pick<KnownModels, 'explain'>;
  /** Throws `rate_limited` if the client's budget is used up. Called when a job has its slot. */
  readonly checkBudget: (client: string) => void;
  /** Creates the spans of a job, or returns null for a request that is not exported; null if no spans are exported. */
  readonly spansOf: ((request: JobRequest, route: Route) => JobSpans | null) | null;
}

/** Owns all jobs from admission to their single outcome. */
export class JobRunner {
  readonly #resources: JobResources;
  readonly #admission: Admission;
  readonly #limits: JobLimits;
  readonly #advice: RetryAdvice;
  readonly #memory: AnsweringParts['memory'];
  #lastNumber = 0;
  readonly #open = new Map<Ticket, Job>();
  /** Counts of the accounts of open jobs. */
  readonly #counts = new Map<Ticket, Disposable>();

  constructor(resources: JobResources, limits: JobLimits) {
    this.#resources = resources;
    this.#admission = new Admission(resources, limits);
    const sampling = new SamplingRules(limits.sampling === 'on', resources.clock);
    this.#memory = { charges: new Charges(), sampling, isUsageUnknown: false };
    this.#limits = limits;
    this.#advice = new RetryAdvice(resources.room.limits.maxActive);
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
    const route = this.#resources.router.route(request);
    this.#recordRequest(request.client);
    const refusal = route.cli.health.circuits.refusalOf({ request, route });
    if (refusal !== null) return this.#refuseCaller(request, refusal);
    const stream = new JobStream(request.isStreamed);
    const job = this.#tryToAdmit(request, route, stream, caller);
    this.#countRound(request, job.chain?.isLive === true ? 'live' : 'replay');
    route.cli.health.circuits.recordAdmission(job);
    const session = job.chain && (job.chain.isLive ? 'live' : 'replay');
    const ignoresEffort = request.effort !== null && job.launch.effort === null;
    const ignores = this.#memory.sampling.ignored(request, route);
    stream.admitted({
      ...{ session, ignoresEffort, ...(ignores.length > 0 && { ignores }) },
      ...(job.chain && { model: route.label ?? request.model }),
      ...(job.turn && { conversationId: job.turn.id }),
    });
    void this.perform(job);
    return stream;
  }

  /** Creates an accepted background job, without admitting it. */
  backgroundJob(request: JobRequest, background: BackgroundPart): Job<BackgroundPart> {
    const route = this.#resources.router.route(request);
    const { clock, spansOf } = this.#resources;
    const spans = spansOf?.(request, route) ?? null;
    return new Job({ request, route, events: background.log, background, spans }, background.signal, clock);
  }

  /**
   * Queues a background job without a time limit, behind the callers. With `isFirst`, it goes before other jobs of its
   * client. Throws like `run`, except for a full queue. Then `perform` must be called.
   */
  admitBackground(job: Job<BackgroundPart>, isFirst: boolean): void {
    const { request } = job;
    const { router } = this.#resources;
    this.#recordRequest(request.client);
    const route = router.withAccount(job.route, request);
    job.reroute(route);
    const { bytes, ...examined } = this.#admission.examine(request, route);
    const enter = () => this.#admission.enter(job, bytes, isFirst, () => this.#prepare(job));
    job.admit(++this.#lastNumber, { ...examined, chain: null }, enter);
    this.#addOpen(job);
  }

  /** Ends the attempt of a background job that was not admitted because of this error. */
  refuseBackground(job: Job<BackgroundPart>, error: unknown): Attempt {
    return this.#conclude(job, refusedEnd(toRelayError(error)));
  }

  /** Prepares a background job that got its slot. */
  #prepare(job: Job): void {
    try {
      job.prepare(this.#admission.prepare(job, (state) => this.#isFree(state, job.route.cli)));
      job.route.cli.health.circuits.recordAdmission(job);
    } catch (error) {
      job.cut(error as Error);
    }
  }

  /** The jobs that hold a slot, longest running first. */
  get running(): readonly Job[] {
    const running = [...this.#open.values()].filter((job) => job.hasStarted);
    return running.sort((a, b) => b.executionMs - a.executionMs);
  }

  /** The open jobs of callers, newest first. */
  get callers(): readonly Job[] {
    const open = [...this.#open.values()].filter((job) => job.background === null && !job.hasEnded);
    return open.sort((a, b) => b.number - a.number);
  }

  /** Returns the jobs for this CLI among the next jobs to get a slot. One job is considered for each slot. */
  next(cli: ModelCli): WaitingJob[] {
    const { room } = this.#resources;
    return room.upcoming(room.limits.maxActive).flatMap((ticket) => {
      const job = this.#open.get(ticket);
      return job?.route.cli === cli ? [{ launch: job.launch, conversation: job.continues }] : [];
    });
  }

  /** Conversations that waiting jobs will continue. */
  get awaited(): ReadonlySet<string> {
    const waiting = [...this.#open.values()].filter((job) => job.isWaiting);
    return new Set(waiting.flatMap(({ continues }) => continues?.id ?? []));
  }

  /** Ends all open jobs with this reason. */
  cutAll(reason: Error): void {
    for (const job of this.#open.values()) job.cut(reason);
  }

  /** Ends all waiting jobs of callers that the breaker of their CLI holds back at the moment. */
  cutHeld(): void {
    for (const job of this.#open.values()) {
      const isCaller = !job.hasStarted && job.background === null;
      const refusal = isCaller ? job.route.cli.health.circuits.refusalOf(job) : null;
      if (refusal !== null) job.cut(refusal);
    }
  }

  /**
   * Ends waiting jobs whose account may no longer serve their client, or whose breaker is open while another account can
   * serve them. A background job is admitted again.
   */
  cutMisplaced(mayServe: (cli: ModelCli, client: string) => boolean): void {
    for (const job of this.#open.values()) {
      if (!job.isWaiting) continue;
      const { route, request } = job;
      const isHeld = route.cli.health.circuits.refusalOf(job) !== null;
      const hasOther = isHeld && this.#resources.router.withAccount(route, request).cli !== route.cli;
      if (hasOther || !mayServe(route.cli, request.client)) job.cut(accountChanged());
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
  mayStart({ request, route }: Pick<Job, 'request' | 'route'>, isPatient: boolean): boolean {
    const { router } = this.#resources;
    return this.#admission.mayStart({ request, route: router.withAccount(route, request) }, isPatient);
  }

  /** Ends a job that was refused before its admission. */
  dismiss(request: JobRequest, reason: unknown): JobFailed {
    const end = refusedEnd(toRelayError(reason));
    if (!isRefused(end)) this.#resources.observer.jobEnded(request, end, false, noBill);
    return end;
  }

  /** Records that the client sent a request, even if it is refused. */
  #recordRequest(client: string): void {
    const { clients, clis } = this.#resources;
    const isSecond = clients.recordClient(client);
    // the failures behind an open circuit may be caused by the first client alone
    if (isSecond) for (const { health } of clis) health.circuits.tryAgain();
  }

  #refuseCaller(request: JobRequest, refusal: RelayError): JobStream {
    const stream = new JobStream(request.isStreamed);
    stream.end(this.dismiss(request, refusal));
    return stream;
  }

  #tryToAdmit(request: JobRequest, route: Route, events: JobStream, caller: AbortSignal): Job {
    try {
      const { ticket, prepared } = this.#admission.admit(request, route, (state) => this.#isFree(state, route.cli));
      const { clock, spansOf } = this.#resources;
      const spans = spansOf?.(request, route) ?? null;
      const job = new Job({ request, route, events, background: null, spans }, caller, clock);
      job.admit(++this.#lastNumber, prepared, () => ticket);
      this.#addOpen(job);
      return job;
    } catch (error) {
      this.#countRound(request, 'refused');
      const { code, message } = toRelayError(error);
      if (code !== 'concurrency_limited') throw error;
      const retryAfterSeconds = this.#advice.seconds(this.#resources.room.waiting);
      throw new RelayError(code, message, { retryAfterSeconds });
    }
  }

  #addOpen(job: Job): void {
    this.#open.set(job.ticket, job);
    this.#counts.set(job.ticket, job.route.cli.countJob());
  }

  #countRound(request: JobRequest, outcome: ToolRound): void {
    if (request.results !== undefined) this.#resources.observer.toolRound(request, outcome);
  }

  /** Whether a process waits for exactly this turn, and no other job continues its conversation. */
  #isFree(state: ConversationState, { pool }: ModelCli): boolean {
    return pool.hasSessionFor(state) && ![...this.#open.values()].some((job) => job.continues?.id === state.id);
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
      const { end, state } = await this.#answer(job, processes);
      reusable = state;
      return this.#end(job, end);
    } catch (error) {
      this.#resources.observer.jobBroke(error);
      const end = job.failed(error);
      if (job.background === null) job.end(end);
      return { kind: 'ended', end };
    } finally {
      void this.#release(processes, reusable, ticket);
    }
  }

  /** Resolves with the end of a job, and with the state in which its process can be reused; null if it cannot. */
  async #answer(job: Job, processes: JobProcesses): Promise<{ end: JobEnd; state: ConversationState | null }> {
    const { observer, checkBudget, redactor } = this.#resources;
    let answering: Answering | null = null;
    try {
      await this.#untilGranted(job);
      checkBudget(job.request.client);
      await job.background?.hooks.beforeStart();
      job.start(this.#limits.executionMs);
      observer.jobStarted(job.queueMs);
      job.spans?.waited(job.waitedMs, null);
      await this.#readEarlier(job);
      const record = job.turn && new TurnRecord(job.turn, job.request, this.#resources);
      answering = this.#answering(job, processes, record);
      const answered = await answering.run();
      const figures = record && storedFigures(answered.model ?? job.route.label, answered.usage);
      const conversation = record && (await record.commit(answered.text, job.signal, figures));
      const whole = { ...answered, text: answered.text ?? answering.sentText };
      const state = answered.isCut ? null : job.stateAfter(whole, conversation);
      return { end: job.done(answered, conversation), state };
    } catch (error) {
      if (isDefect(error)) observer.jobBroke(error);
      const failure = KnownModels.isUnknown(error) ? await this.#explained(error, job) : error;
      return { end: redacted(job.failed(failure, answering?.refusedAnswer), redactor), state: null };
    }
  }

  async #release(processes: JobProcesses, state: ConversationState | null, ticket: Ticket): Promise<void> {
    await processes.release(state).catch((error) => this.#resources.observer.jobBroke(error));
    this.#open.delete(ticket);
    this.#counts.get(ticket)?.[Symbol.dispose]();
    this.#counts.delete(ticket);
    ticket.release();
  }

  /** Loads earlier text only after the job got its slot, so that waiting jobs need no memory for it. */
  async #readEarlier(job: Job): Promise<void> {
    const { earlier, client } = job.request;
    if (earlier === undefined) return;
    job.recall(await orAborted(this.#resources.responses.text({ id: earlier.id, client }), job.signal));
  }

  #explained(error: RelayError, { request, signal }: Job): Promise<RelayError> {
    return orAborted(this.#resources.knownModels.explain(error, request.client), signal).catch(() => error);
  }

  async #untilGranted(job: Job): Promise<void> {
    const { room, clock } = this.#resources;
    const { ticket, events, signal, turn, background } = job;
    if (background === null) job.limitWaiting(this.#limits.queueTimeoutMs);
    const report = (position: number, reason: WaitReason) => events.queued?.(position, reason) === true;
    ticket.onPosition = report;
    if (ticket.isWaiting && report(ticket.position, ticket.reason)) ticket.positionMs = clock.monotonicMs();
    const cut = (reason: Error) => job.cut(reason);
    if (background === null || background.isLeased) {
      turn?.ready(signal, cut).then(() => room.next(), cut); // has no effect if the same signal has ended the wait
    }
    await ticket.granted(signal);
  }

  #answering(job: Job, processes: JobProcesses, record: TurnRecord | null): Answering {
    const { schemas, countTokens, observer } = this.#resources;
    const onFirstOutput = () => {
      observer.firstDelta(job.request, job.executionMs);
      job.route.cli.health.circuits.recordAnswer(job);
    };
    return new Answering(job, { processes, schemas, countTokens, record, onFirstOutput, memory: this.#memory });
  }

  /** Ends the turn of a job, exactly once. */
  #end(job: Job, endOfTurn: JobEnd): Attempt {
    job.close();
    job.turn?.[Symbol.dispose]();
    if (job.hasStarted) this.#advice.recordDuration(job.executionMs);
    return this.#conclude(job, job.route.cli.health.recordJobEnd(job, endOfTurn, job.hasStarted));
  }

  /**
   * Decides whether a job has ended with this attempt, and counts its end. Readers of a background job get the end when
   * it is stored. A background job that was refused never reached a model, and is counted as a refused request.
   */
  #conclude(job: Job, end: JobEnd): Attempt {
    const { background, hasStarted } = job;
    const shown = this.#shown(end);
    if (background === null) job.end(shown);
    else if (mustRetry(end, hasStarted)) return { kind: 'retry', pausesAll: end.outcome === 'store_unavailable' };
    background?.log.seal();
    if (background === null || !isRefused(end)) {
      if (!hasStarted) job.spans?.waited(job.waitedMs, end);
      this.#resources.observer.jobEnded(job.request, end, hasStarted, job.bill);
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

  #retryAfter(outcome: FailedOutcome): number | undefined {
    if (outcome === 'shutting_down') return retryAfter('drain', 0); // the drain deadline has passed
    return outcome === 'queue_timeout' ? this.#advice.seconds(this.#resources.room.waiting) : undefined;
  }
}

function accountChanged(): RelayError {
  const message = 'the account of this job can no longer be used, but another one may be: send the request again';
  return new RelayError('cli_error', message, { reason: 'other', retryAfterSeconds: 1 });
}

/** Redacts an error, because programs and adapters may print the operator's secrets. */
function redacted({ failure, ...end }: JobFailed, redactor: Pick<Redactor, 'redact'>): JobFailed {
  const { message, stderr } = failure;
  const texts = { message: redactor.redact(message), ...(stderr !== undefined && { stderr: redactor.redact(stderr) }) };
  return { ...end, failure: { ...failure, ...texts } };
}

/** Number of recent jobs in the median. */
const maxJobs = 50;

/** Owns the durations of recent jobs, and estimates from them when a retry may succeed. */
export class RetryAdvice {
  /** Milliseconds, oldest first. */
  readonly #durations: number[] = [];
  readonly #slots: number;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** Records the duration of an ended job. */
  recordDuration(ms: number): void {
    this.#durations.push(ms);
    if (this.#durations.length > maxJobs) this.#durations.shift();
  }

  /** Median duration of recent jobs; 0 before any job has ended. */
  get medianMs(): number {
    const sorted = this.#durations.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
  }

  /** Estimates the seconds until a job with this many jobs before it gets a slot; an integer from 1 to 300. */
  seconds(ahead: number): number {
    return retryAfter('queue', (ahead / this.#slots) * this.medianMs);
  }
}
