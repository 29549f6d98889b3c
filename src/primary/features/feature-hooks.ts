import type { OperatorAct } from '../../shared/acts.js';
import type { LimitUse } from '../../shared/api/limit-use.js';
import type { ModelCapabilities } from '../../shared/api/models.js';
import type { JobForm } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import { contained, type OnFault } from '../../shared/contained.js';
import { invalid, RelayError } from '../../shared/errors.js';
import type { JobEnd, JobRequest, PassReason } from '../../shared/job.js';
import type { FamilyFigures } from '../../shared/metrics.js';
import type { Capabilities, Turn } from '../cli/contract/adapter.js';
import type { Route } from '../cli/route.js';
import type { AnswerTurns, TranslateTurn, TurnTranslation } from '../jobs/answer-turns.js';
import type { StrategyEnd } from '../jobs/answered.js';
import type { BackgroundPart } from '../jobs/background-part.js';
import type { Bill } from '../jobs/bill.js';
import type { Job } from '../jobs/job.js';
import type { JobFeatures, PreparedJob } from '../jobs/job-features.js';
import type { JobObserver } from '../jobs/job-observer.js';
import type { JobTrace } from '../jobs/job-trace.js';
import type { RouteChoice, RoutedJob, RouteRules } from '../jobs/route-choice.js';
import type { ClientRules, JobRank } from '../jobs/ticket.js';
import type { WebSearcher } from '../jobs/web-searcher.js';
import type { BannerRows } from '../lifecycle/banner.js';
import { type Counts, sumCounts } from '../store/contract/store.js';
import type {
  CreatePrimaryPart,
  EndedBackgroundJob,
  FeatureMetric,
  PrimaryCore,
  PrimaryPart,
  ReservedSlots,
  Spender,
} from './feature.js';
import { JobTraces } from './job-traces.js';

const raise: OnFault = (fault) => {
  throw fault;
};

/**
 * Calls the hooks of all features, in the order of their list. An exception of a hook that refuses nothing goes to
 * `onFault`, and neither the core nor the other features notice it.
 */
export class FeatureHooks implements JobFeatures {
  readonly #parts: PrimaryPart[];
  readonly #onFault: OnFault;

  constructor(parts: readonly PrimaryPart[] = [], onFault: OnFault = raise) {
    this.#parts = [...parts];
    this.#onFault = onFault;
  }

  /** Creates the parts of all features. The core exists before them, and calls their hooks only afterwards. */
  createParts(
    creators: readonly CreatePrimaryPart[],
    core: Omit<
      PrimaryCore,
      'storedKinds' | 'recordsOf' | 'limitUsesOf' | 'beforeAct' | 'earlierParts' | 'jobHooks' | 'mayStore'
    >,
  ): void {
    const storedKinds = () => this.#parts.flatMap((part) => part.storedKinds ?? []);
    const recordsOf = (client: ClientText) => Object.assign({}, ...this.#parts.map((part) => part.recordsOf?.(client)));
    const limitUsesOf = (client: ClientText | null) => this.limitUsesOf(client);
    const beforeAct = (act: OperatorAct) => this.beforeAct(act);
    const mayStore = (client: ClientText) => this.mayStore(client);
    const common = { ...core, storedKinds, recordsOf, limitUsesOf, beforeAct, mayStore, jobHooks: this };
    for (const create of creators) this.#parts.push(create({ ...common, earlierParts: [...this.#parts] }));
  }

  get counters(): readonly FeatureMetric[] {
    return this.#parts.flatMap(({ counters = [] }) => counters.map((each) => this.#readable(each)));
  }

  get gauges(): readonly FeatureMetric[] {
    return this.#parts.flatMap(({ gauges = [] }) => gauges.map((each) => this.#readable(each)));
  }

  get modelAbilities(): string[] {
    return this.#parts.flatMap(({ modelAbilities = [] }) => modelAbilities);
  }

  get searcher(): WebSearcher | null {
    return this.#parts.find(({ searcher }) => searcher !== undefined)?.searcher ?? null;
  }

  /** Handlers of the calls of all features. */
  get handlers(): PrimaryPart['handlers'] {
    return Object.assign({}, ...this.#parts.map(({ handlers }) => handlers)) as PrimaryPart['handlers'];
  }

  /**
   * Asks each feature before an act of an administrator, a person's act on own keys, or a reload. Rejects if a feature
   * refuses it.
   */
  async beforeAct(act: OperatorAct): Promise<void> {
    for (const part of this.#parts) await part.beforeAct?.(act);
  }

  /** Lets each feature remove what it has of these clients outside of the store. Rejects if one cannot. */
  async removeClients(...order: Parameters<NonNullable<PrimaryPart['removeClients']>>): Promise<Counts> {
    let counts: Counts = {};
    for (const part of this.#parts) counts = sumCounts(counts, (await part.removeClients?.(...order)) ?? {});
    return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
  }

  /** Whether contents of this client may be stored. They are not if a feature throws. */
  mayStore(client: ClientText): boolean {
    return this.#parts.every((part) => {
      try {
        return part.mayStore?.(client) !== false;
      } catch (error) {
        this.#onFault(error);
        return false;
      }
    });
  }

  checkModels(request: JobRequest): void {
    const { fallbacks = [] } = request;
    if (fallbacks.length > 0 && !this.#parts.some(({ job }) => job?.route)) throw invalid('model', 'must be one model');
    for (const { job } of this.#parts) job?.checkModels?.(request);
  }

  checkRequest(request: JobRequest): void {
    for (const { job } of this.#parts) job?.check?.(request);
  }

  rankOf(request: JobRequest): JobRank | null {
    return this.#firstOf(({ job }) => job?.rank?.(request));
  }

  /** Slots that are reserved for groups now, for the status. */
  get reservedSlots(): readonly ReservedSlots[] {
    return this.#collect((part) => part.reservedSlots);
  }

  /** Returns why jobs of others go before this one while it waits, as sentences. */
  precedenceOver(request: Spender): string[] {
    return this.#collect(({ job }) => job?.precedenceOver?.(request));
  }

  rulesOf(request: JobRequest): ClientRules {
    const gates = this.#parts.flatMap(({ job }) => job?.gatesOf?.(request) ?? []);
    return { gates, share: this.#firstOf(({ job }) => job?.shareOf?.(request)) };
  }

  chooseRoute(request: JobRequest, first: Route, rules: RouteRules): RouteChoice | null {
    return this.#firstOf(({ job }) => job?.route?.(request, first, rules));
  }

  checkRoute(request: JobRequest, route: Route): void {
    for (const { job } of this.#parts) job?.checkRoute?.(request, route);
  }

  async readEarlier(request: JobRequest): Promise<JobRequest> {
    const read = this.#firstOf(({ job }) => job?.readEarlier?.(request));
    if (read === null) throw new RelayError('not_found', 'no such response');
    return read;
  }

  async prepareTurn(turn: Turn, job: PreparedJob, extras: Capabilities): Promise<Turn> {
    let prepared = turn;
    for (const { job: hooks } of this.#parts) {
      if (hooks?.prepare !== undefined) prepared = await hooks.prepare(prepared, job, extras);
    }
    return prepared;
  }

  answerJob(turns: AnswerTurns, turn: Turn): Promise<StrategyEnd> | null {
    return this.#firstOf(({ job }) => job?.answer?.(turns, turn));
  }

  translateTurn(...turn: Parameters<TranslateTurn>): TurnTranslation | null {
    return this.#firstOf(({ job }) => job?.translate?.(...turn));
  }

  modelCapabilities(extras: Capabilities): Partial<ModelCapabilities> {
    return Object.assign(
      {},
      ...this.#parts.map((part) => part.modelCapabilities?.(extras)),
    ) as Partial<ModelCapabilities>;
  }

  nextRoute(job: RoutedJob, error: unknown, hasRoom: (route: Route) => boolean): RouteChoice | null {
    return this.#firstOf((part) => part.job?.failed?.(job, error, hasRoom));
  }

  /** Reports that a job has moved from a route that could not answer. */
  jobMoved(request: JobRequest, from: Route, to: Route, reason: PassReason): void {
    this.#tell(({ job }) => job?.moved?.(request, from, to, reason));
  }

  /** Reports the input tokens of an answer. */
  inputCounted(...count: Parameters<JobObserver['inputCounted']>): void {
    this.#tell(({ job }) => job?.inputCounted?.(...count));
  }

  /** Throws if a feature refuses this background job. */
  admitBackground(request: JobRequest, form: JobForm, id?: string): void {
    for (const { job } of this.#parts) job?.admit?.(request, form, id);
  }

  /** Throws if a feature refuses this job. */
  startJob(request: JobRequest): void {
    for (const { job } of this.#parts) job?.start?.(request);
  }

  /** Returns the use of the limits of a client; with null, of all limits. */
  limitUsesOf(client: ClientText | null): LimitUse[] {
    return this.#collect((part) => part.limitUsesOf?.(client));
  }

  traceJob(request: JobRequest, choice: RouteChoice, onFault: OnFault): JobTrace | null {
    const traces = this.#parts.flatMap(({ job }) => job?.trace?.(request, choice) ?? []);
    return traces.length > 0 ? new JobTraces(traces, onFault) : null;
  }

  attemptEnded(request: JobRequest, end: JobEnd, bill: Bill): void {
    this.#tell(({ job }) => job?.attemptEnded?.(request, end, bill));
  }

  jobEnded(request: JobRequest, end: JobEnd, bill: Bill): void {
    this.#tell(({ job }) => job?.jobEnded?.(request, end, bill));
  }

  /** Reports a request that was refused before it became a job. */
  countRefusal(client: ClientText): void {
    this.#tell((part) => part.countRefusal?.(client));
  }

  /** Reports the figures of a worker since its last report. */
  figuresReported(families: readonly FamilyFigures[]): void {
    this.#tell((part) => part.figuresReported?.(families));
  }

  /** Reports a background job whose end is stored. */
  backgroundEnded(ended: EndedBackgroundJob): void {
    this.#tell(({ job }) => job?.ended?.(ended));
  }

  /** Never rejects: keys that cannot be read yet are refused. */
  async refreshKeys(): Promise<void> {
    for (const part of this.#parts) await this.#settle(() => part.refreshKeys?.());
  }

  findKeyWarnings(): string[] {
    return this.#collect((part) => part.findKeyWarnings?.());
  }

  async restored(): Promise<void> {
    for (const part of this.#parts) await part.restored?.();
  }

  start(): void {
    for (const part of this.#parts) part.start?.();
  }

  drain(): void {
    this.#tell((part) => part.drain?.());
  }

  get openJobs(): Job<BackgroundPart>[] {
    return this.#collect((part) => part.openJobs);
  }

  slotsChanged(): void {
    this.#tell((part) => part.slotsChanged?.());
  }

  /** Never rejects: the drain would not end. */
  async idle(): Promise<void> {
    for (const part of this.#parts) await this.#settle(() => part.idle?.());
  }

  cut(): void {
    this.#tell((part) => part.cut?.());
  }

  async clientsWith(owner: ClientText): Promise<readonly ClientText[]> {
    return (await Promise.all(this.#parts.map((part) => part.clientsWith?.(owner) ?? []))).flat();
  }

  async flush(): Promise<void> {
    for (const part of this.#parts) await part.flush?.();
  }

  /**
   * Removes the data of a client. Resolves with numbers by kind. The last feature is the first one: the end of a job,
   * which it awaits, may still add to the data of features that it uses.
   */
  async purge(client: ClientText): Promise<Counts> {
    const counts: Counts[] = [];
    for (const part of this.#parts.toReversed()) counts.push((await part.purgeClient?.(client)) ?? {});
    return Object.assign({}, ...counts) as Counts;
  }

  expire(): void {
    this.#tell((part) => part.expire?.());
  }

  bannerRows(url: string): BannerRows {
    return this.#collect((part) => part.bannerRows?.(url));
  }

  #firstOf<T>(answerOf: (part: PrimaryPart) => T | null | undefined): T | null {
    for (const part of this.#parts) {
      const answer = answerOf(part) ?? null;
      if (answer !== null) return answer;
    }
    return null;
  }

  /** Stops all features at the same time, because each may wait for programs elsewhere. Never rejects. */
  async stop(): Promise<void> {
    await Promise.all(this.#parts.map((part) => this.#settle(() => part.stop?.())));
  }

  #tell(call: (part: PrimaryPart) => void): void {
    const tell = contained(call, this.#onFault);
    for (const part of this.#parts) tell(part);
  }

  #collect<T>(answersOf: (part: PrimaryPart) => readonly T[] | undefined): T[] {
    const found: T[] = [];
    this.#tell((part) => found.push(...(answersOf(part) ?? [])));
    return found;
  }

  async #settle(call: () => Promise<void> | undefined): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.#onFault(error);
    }
  }

  /** Returns the metric without figures while it cannot be read. Its fault is reported once, until it can be read again. */
  #readable(metric: FeatureMetric): FeatureMetric {
    let isFaulty = false;
    const read = () => {
      try {
        const figures = metric.read();
        isFaulty = false;
        return figures;
      } catch (error) {
        if (!isFaulty) this.#onFault(error);
        isFaulty = true;
        return {};
      }
    };
    return { ...metric, read };
  }
}
