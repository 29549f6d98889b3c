import { orAborted, withResolvers } from '../../shared/async.js';
import type { SwitchPosition } from '../../shared/config/variables.js';
import { isDefect, RelayError, retrySeconds, toRelayError } from '../../shared/errors.js';
import type { FailedOutcome, JobEnd, JobFailed, JobRequest, ToolRound } from '../../shared/job.js';
import { KnownModels } from '../cli/model-catalog.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { WaitingJob } from '../cli/pool/standby-keeper.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { Redactor } from '../cli/process/redactor.js';
import type { Route } from '../cli/route.js';
import { TurnRecord, type TurnResources } from '../conversations/conversation-turn.js';
import type { SeenClients } from '../health/evidence.js';
import { storedFigures } from '../store/contract/stored-text.js';
import type { SchemaChecker } from '../threads/schema-checker.js';
import { Admission, type AdmissionResources } from './admission.js';
import { Answering } from './answering.js';
import type { BackgroundPart } from './background-part.js';
import { isRefused, Job, mustWaitAgain, refusedEnd } from './job.js';
import { JobProcesses } from './job-processes.js';
import type { JobSpans } from './job-spans.js';
import { JobStream } from './job-stream.js';
import { SamplingRules } from './sampling-rules.js';
import type { Ticket } from './ticket.js';

export interface JobLimits {
  readonly queueTimeoutMs: number;
  readonly executionMs: number;
  /** Whether callers are told what a program wrote to stderr. */
  readonly exposeStderr: boolean;
  /** Whether clients may offer tools. */
  readonly tools: SwitchPosition;
  /** Whether clients may say how the model picks its words. */
  readonly sampling: SwitchPosition;
}

export interface JobObserver {
  /** The client has sent the results of calls. */
  toolRound(request: JobRequest, outcome: ToolRound): void;
  /** A job has its slot, after this time in the queue. */
  jobStarted(queueMs: number): void;
  /** The first text of an answer has come, this long after the job got its slot. */
  firstDelta(request: JobRequest, ms: number): void;
  /** Called exactly once for each admitted job. */
  jobEnded(request: JobRequest, end: JobEnd, hadSlot: boolean): void;
  /** A job failed because of a defect of ours. */
  jobBroke(thrown: unknown): void;
}

export interface JobResources extends TurnResources, AdmissionResources {
  readonly clis: readonly ModelCli[];
  /** Those who have asked for a job of any CLI. */
  readonly clients: SeenClients;
  readonly schemas: Pick<SchemaChecker, 'read'>;
  readonly observer: JobObserver;
  readonly redactor: Pick<Redactor, 'redact'>;
  /** The names that a client may use instead of a model that its CLI does not know. */
  readonly knownModels: Pick<KnownModels, 'explain'>;
  /** Throws `rate_limited` for a client whose budget is used up: it may have been used up while a job waited. */
  readonly checkBudget: (client: string) => void;
  /** Null if no spans are exported; it returns null if those of this request are not. */
  readonly spansOf: ((request: JobRequest, route: Route) => JobSpans | null) | null;
}

/** Owns the jobs from admission to their one outcome. */
export class JobRunner {
  readonly #resources: JobResources;
  readonly #admission: Admission;
  readonly #limits: JobLimits;
  readonly #advice: RetryAdvice;
  readonly #sampling: SamplingRules;
  /** Whether the program reported no tokens for the last job that was answered. */
  #isUsageUnknown = false;
  #lastNumber = 0;
  readonly #open = new Map<Ticket, Job>();

  constructor(resources: JobResources, limits: JobLimits) {
    this.#resources = resources;
    this.#admission = new Admission(resources, limits);
    this.#sampling = new SamplingRules(limits.sampling === 'on', resources.clock);
    this.#limits = limits;
    this.#advice = new RetryAdvice(resources.room.limits.maxActive);
  }

  /** Seconds until the work that there is has been done. */
  get busySeconds(): number {
    const { room } = this.#resources;
    return this.#advice.seconds(room.active + room.waiting);
  }

  /**
   * Admits the job at once, or throws: `validation_error` for a model or a conversation that can't be used,
   * `concurrency_limited`. What was admitted ends with exactly one `job-end`; that is all there is of a job that the
   * breaker holds back.
   */
  run(request: JobRequest, caller: AbortSignal): JobStream {
    const route = this.#resources.router.route(request);
    this.#see(request.client);
    const refusal = route.cli.health.circuits.refusal({ request, route });
    if (refusal !== null) return this.#refuse(request, refusal);
    const stream = new JobStream(request.isStreamed);
    const job = this.#tryToAdmit(request, route, stream, caller);
    this.#countRound(request, job.chain?.isLive === true ? 'live' : 'replay');
    route.cli.health.circuits.admitted(job);
    const session = job.chain && (job.chain.isLive ? 'live' : 'replay');
    const ignoresEffort = request.effort !== null && job.launch.effort === null;
    const ofChain = job.chain && { model: route.label ?? request.model };
    const ignores = this.#sampling.ignored(request, route);
    const ofWishes = ignores.length > 0 && { ignores };
    stream.admitted({
      session,
      ignoresEffort,
      ...ofWishes,
      ...ofChain,
      ...(job.turn && { conversationId: job.turn.id }),
    });
    this.#start(job);
    return stream;
  }

  /** A background job as it is accepted. It is admitted later. */
  backgroundJob(request: JobRequest, background: BackgroundPart): Job<BackgroundPart> {
    const route = this.#resources.router.route(request);
    const { clock, spansOf } = this.#resources;
    const spans = spansOf?.(request, route) ?? null;
    return new Job({ request, route, events: background.log, background, spans }, background.signal, clock);
  }

  /**
   * A background job waits as long as it takes, behind the callers. Throws as `run`, but for a full queue. `isFirst`: it
   * goes before the others of its client. Resolves with the end of this attempt.
   */
  runInBackground(job: Job<BackgroundPart>, isFirst: boolean): Promise<JobEnd> {
    const { request, route, background } = job;
    this.#see(request.client);
    const { bytes, ...examined } = this.#admission.examine(request, route);
    const enter = () => this.#admission.enter(job, background, bytes, isFirst, () => this.#prepare(job));
    const { promise, resolve } = withResolvers<JobEnd>();
    background.onEnd = resolve;
    job.admit(++this.#lastNumber, { ...examined, chain: null }, enter);
    this.#start(job);
    return promise;
  }

  #start(job: Job): void {
    this.#open.set(job.ticket, job);
    void this.#perform(job);
  }

  /** A background job has its slot. */
  #prepare(job: Job): void {
    try {
      job.prepare(this.#admission.prepare(job, (state) => this.#isFree(state, job.route.cli)));
      job.route.cli.health.circuits.admitted(job);
    } catch (error) {
      job.cut(error as Error);
    }
  }

  /** The jobs that hold a slot, the longest running one first. */
  get running(): readonly Job[] {
    const running = [...this.#open.values()].filter((job) => job.hasStarted);
    return running.sort((a, b) => b.executionMs - a.executionMs);
  }

  find(number: number): Job | null {
    return [...this.#open.values()].find((job) => job.number === number) ?? null;
  }

  /** Of the jobs that are next to get a slot, as many as there are slots, those of this CLI. */
  next(cli: ModelCli): WaitingJob[] {
    const { room } = this.#resources;
    return room.upcoming(room.limits.maxActive).flatMap((ticket) => {
      const job = this.#open.get(ticket);
      return job?.route.cli === cli ? [{ launch: job.launch, conversation: job.continues }] : [];
    });
  }

  /** The conversations that jobs go on with which wait for a slot. */
  get awaited(): ReadonlySet<string> {
    const waiting = [...this.#open.values()].filter((job) => job.isWaiting);
    return new Set(waiting.flatMap(({ continues }) => continues?.id ?? []));
  }

  /** Ends every job that waits or runs, for this reason. */
  cutAll(reason: Error): void {
    for (const job of this.#open.values()) job.cut(reason);
  }

  /** Ends every job of a caller that waits and that the breaker of its CLI holds back now. */
  cutHeld(): void {
    for (const job of this.#open.values()) {
      const isCaller = !job.hasStarted && job.background === null;
      const refusal = isCaller ? job.route.cli.health.circuits.refusal(job) : null;
      if (refusal !== null) job.cut(refusal);
    }
  }

  /** The model of this job, as far as it is known before its CLI tells. Throws what `run` would throw now, but for a full queue. */
  check(request: JobRequest): string | null {
    const route = this.#resources.router.route(request);
    this.#admission.examine(request, route);
    return route.label ?? request.model;
  }

  /** Whether a background job would get a slot at once; `isPatient`: whether it could wait for one as a caller does. */
  mayStart(job: Pick<Job, 'request' | 'route'>, isPatient: boolean): boolean {
    return this.#admission.mayStart(job, isPatient);
  }

  /** The end of a job that never got as far as `run`. */
  dismiss(request: JobRequest, reason: unknown): JobFailed {
    const end = refusedEnd(toRelayError(reason));
    if (!isRefused(end)) this.#resources.observer.jobEnded(request, end, false);
    return end;
  }

  /** This client asks for a job, whatever becomes of it. */
  #see(client: string): void {
    const { clients, clis } = this.#resources;
    const isSecond = clients.saw(client);
    if (isSecond) for (const { health } of clis) health.circuits.tryAgain(); // what holds jobs back may be the first one's doing
  }

  #refuse(request: JobRequest, refusal: RelayError): JobStream {
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
      return job;
    } catch (error) {
      this.#countRound(request, 'refused');
      const { code, message } = toRelayError(error);
      if (code !== 'concurrency_limited') throw error;
      const retryAfterSeconds = this.#advice.seconds(this.#resources.room.waiting);
      throw new RelayError(code, message, { retryAfterSeconds });
    }
  }

  #countRound(request: JobRequest, outcome: ToolRound): void {
    if (request.results !== undefined) this.#resources.observer.toolRound(request, outcome);
  }

  /** Whether a process waits for just this turn, and no other job goes on there. */
  #isFree(state: ConversationState, { pool }: ModelCli): boolean {
    return pool.keeps(state) && ![...this.#open.values()].some((job) => job.continues?.id === state.id);
  }

  /**
   * The whole story of a job. The caller gets the end before the processes are gone, and the conversation is free for its
   * next turn; the slot is free only when the last process has gone.
   */
  async #perform(job: Job): Promise<void> {
    const { clis, observer, checkBudget } = this.#resources;
    const processes = new JobProcesses(job, clis);
    const { ticket } = job; // a background job may have another one before its processes are gone
    let kept: ConversationState | null = null;
    try {
      await this.#untilGranted(job);
      checkBudget(job.request.client);
      await job.background?.hooks.beforeStart();
      job.start(this.#limits.executionMs);
      observer.jobStarted(job.queueMs);
      job.spans?.waited(job.waitedMs, null);
      const record = job.turn && new TurnRecord(job.turn, job.request, this.#resources);
      const answering = this.#answering(job, processes, record);
      const answered = await answering.run();
      this.#isUsageUnknown = answered.usage.outputTokens === null;
      const figures = record && storedFigures(answered.model ?? job.route.label, answered.usage);
      const conversation = record && (await record.commit(answered.text, job.signal, figures));
      const whole = { ...answered, text: answered.text ?? answering.said };
      if (!answered.isCut) kept = job.stateAfter(whole, conversation);
      this.#end(job, job.done(answered, conversation));
    } catch (error) {
      if (isDefect(error)) observer.jobBroke(error);
      const failure = KnownModels.isUnknown(error) ? await this.#explained(error, job) : error;
      this.#end(job, redacted(job.failed(failure), this.#resources.redactor));
    } finally {
      await processes.release(kept).catch((error) => observer.jobBroke(error));
      this.#open.delete(ticket);
      ticket.release();
    }
  }

  #explained(error: RelayError, { request, signal }: Job): Promise<RelayError> {
    return orAborted(this.#resources.knownModels.explain(error, request.client), signal).catch(() => error);
  }

  async #untilGranted(job: Job): Promise<void> {
    const { room, clock } = this.#resources;
    const { ticket, events, signal, turn, background } = job;
    if (background === null) job.limitWaiting(this.#limits.queueTimeoutMs);
    ticket.onPosition = (position, reason) => events.queued(position, reason);
    if (ticket.isWaiting && events.queued(ticket.position, ticket.reason)) ticket.positionMs = clock.monotonicMs();
    const cut = (reason: Error) => job.cut(reason);
    if (background === null || background.hooks.isTaken) {
      turn?.ready(signal, cut).then(() => room.next(), cut); // where the same signal has ended the waiting, that does nothing
    }
    await ticket.granted(signal);
  }

  #answering(job: Job, processes: JobProcesses, record: TurnRecord | null): Answering {
    const { schemas, countTokens, observer } = this.#resources;
    const onFirstText = () => {
      observer.firstDelta(job.request, job.executionMs);
      job.route.cli.health.circuits.served(job);
    };
    const own = { isUsageUnknown: this.#isUsageUnknown, sampling: this.#sampling };
    return new Answering(job, { processes, schemas, countTokens, record, onFirstText, ...own });
  }

  /** The one end of a job. */
  #end(job: Job, endOfTurn: JobEnd): void {
    const { observer } = this.#resources;
    job.close();
    job.turn?.[Symbol.dispose]();
    if (job.hasStarted) this.#advice.took(job.executionMs);
    const end = job.route.cli.health.ended(job, endOfTurn, job.hasStarted);
    if (job.background === null) job.end(this.#shown(end));
    else this.#endAttempt(job, job.background, this.#shown(end));
    if (!this.#counts(job, end)) return;
    if (!job.hasStarted) job.spans?.waited(job.waitedMs, end);
    observer.jobEnded(job.request, end, job.hasStarted);
  }

  /** Its owner decides whether it waits again, and stores its end before readers get it. */
  #endAttempt(job: Job, { log, onEnd }: BackgroundPart, end: JobEnd): void {
    if (job.hasStarted) log.seal();
    onEnd(end);
  }

  /** A background job that waits again has not ended, and one that can't be run never was a job of the model. */
  #counts({ background, hasStarted }: Job, end: JobEnd): boolean {
    return background === null || !(mustWaitAgain(end, hasStarted) || isRefused(end));
  }

  /** The end as the caller may see it. */
  #shown(end: JobEnd): JobEnd {
    if (end.outcome === 'ok') return end;
    const { stderr, ...failure } = end.failure;
    const isShown = stderr !== undefined && this.#limits.exposeStderr;
    const message = isShown ? `${failure.message}: ${stderr}` : failure.message;
    const retryAfterSeconds = this.#retryAfter(end.outcome) ?? failure.retryAfterSeconds;
    return { ...end, failure: { ...failure, message, retryAfterSeconds } };
  }

  #retryAfter(outcome: FailedOutcome): number | undefined {
    if (outcome === 'shutting_down') return this.#advice.seconds(0); // nothing is left of the drain
    return outcome === 'queue_timeout' ? this.#advice.seconds(this.#resources.room.waiting) : undefined;
  }
}

/** A program, or its adapter, may name secrets of the operator in what it says of a failure. */
function redacted({ failure, ...end }: JobFailed, redactor: Pick<Redactor, 'redact'>): JobFailed {
  const { message, stderr } = failure;
  const told = { message: redactor.redact(message), ...(stderr !== undefined && { stderr: redactor.redact(stderr) }) };
  return { ...end, failure: { ...failure, ...told } };
}

/** The median is of so many jobs. */
const maxJobs = 50;

/** Owns how long the last jobs took, and estimates from it when a retry may succeed. */
export class RetryAdvice {
  /** Milliseconds, oldest first. */
  readonly #durations: number[] = [];
  readonly #slots: number;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** A job has given back its slot, after this time. */
  took(ms: number): void {
    this.#durations.push(ms);
    if (this.#durations.length > maxJobs) this.#durations.shift();
  }

  /** The median; 0 before any job has ended. */
  get medianMs(): number {
    const sorted = this.#durations.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
  }

  /** Seconds until a job that has this many before it is likely to have a slot: whole ones, between 1 and 300. */
  seconds(ahead: number): number {
    return retrySeconds((ahead / this.#slots) * this.medianMs);
  }
}
