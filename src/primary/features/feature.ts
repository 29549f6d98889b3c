import type { OperatorAct } from '../../shared/acts.js';
import type { HealthBody, ReadinessBody, ReasonBody } from '../../shared/api/health.js';
import type { LimitUse } from '../../shared/api/limit-use.js';
import type { ModelCapabilities } from '../../shared/api/models.js';
import type { CheckReport } from '../../shared/api/setup.js';
import type { JobForm } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import type { CommonShare } from '../../shared/fairness/fair-queue.js';
import type { SharedFeature } from '../../shared/features/feature.js';
import type { Calls, Peer } from '../../shared/ipc/peer.js';
import type { Actor, PrimaryCalls } from '../../shared/ipc/protocol.js';
import type { JobEnd, JobRequest, PassReason } from '../../shared/job.js';
import type { Logger } from '../../shared/log/logger.js';
import type { FamilyFigures, Figures } from '../../shared/metrics.js';
import type { Clients } from '../access/clients.js';
import type { FileFaults } from '../access/file-faults.js';
import type { Capabilities, Turn } from '../cli/contract/adapter.js';
import type { AdapterFamily } from '../cli/contract/adapter-family.js';
import type { LoginProvider } from '../cli/logins.js';
import type { ModelCatalog } from '../cli/model-catalog.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { LearnedSizes } from '../cli/model-sizes.js';
import type { AtLeastOne, ModelsCheck } from '../cli/models.js';
import type { Launcher } from '../cli/process/launcher.js';
import type { ModelRouter, Route } from '../cli/route.js';
import type { ChooseContainments } from '../cli/terminate/termination.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { TurnResources } from '../conversations/conversation-turn.js';
import type { TurnGate } from '../conversations/turn-gate.js';
import type { ConversationChanges, ReadableConversations, StoreProvider } from '../hosts/hosts.js';
import type { AnswerTurns, TranslateTurn } from '../jobs/answer-turns.js';
import type { StrategyEnd } from '../jobs/answered.js';
import type { BackgroundPart } from '../jobs/background-part.js';
import type { Bill } from '../jobs/bill.js';
import type { Job } from '../jobs/job.js';
import type { JobEntry } from '../jobs/job-entry.js';
import type { PreparedJob } from '../jobs/job-features.js';
import type { JobObserver } from '../jobs/job-observer.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { JobTrace } from '../jobs/job-trace.js';
import type { LocalJobs } from '../jobs/local-jobs.js';
import type { OpenJobs } from '../jobs/open-jobs.js';
import type { RouteChoice, RoutedJob, RouteRules } from '../jobs/route-choice.js';
import type { JobGate, JobRank } from '../jobs/ticket.js';
import type { WaitingRoom } from '../jobs/waiting-room.js';
import type { WebSearcher } from '../jobs/web-searcher.js';
import type { BannerRows } from '../lifecycle/banner.js';
import type { Front } from '../lifecycle/front.js';
import type { Host } from '../lifecycle/host.js';
import type { Counts, Store } from '../store/contract/store.js';
import type { StoreTable } from '../store/contract/store-table.js';
import type { TokenCounter } from '../threads/token-counter.js';
import type { Addresses } from '../workers/addresses.js';
import type { FeatureHooks } from './feature-hooks.js';
import type { StoredKind } from './stored-kind.js';

/** Members that a feature with limits of keys, people and groups needs. */
type GroupMembers = 'ownOptionsOf' | 'findGroup' | 'groups' | 'groupsOf' | 'keysAndPeople';

/** Members that a feature with keys of its own needs. */
type KeyMembers =
  | 'operatorKeys'
  | 'keyNames'
  | 'personOptions'
  | 'personLines'
  | 'groupLines'
  | 'countedGroupsOf'
  | 'formerClientsOf'
  | 'replaceAddedKeys'
  | 'replaceLentKeys'
  | 'keyWithDigest';

/** Members of the runner that a feature with background jobs needs. */
type BackgroundMember =
  | 'checkRequest'
  | 'backgroundJob'
  | 'admitBackground'
  | 'refuseBackground'
  | 'perform'
  | 'mayStart'
  | 'reportDefect';

/** Client and groups for which a job is counted. */
export type Spender = Pick<JobRequest, 'client' | 'groups'>;

type ObservedState = HealthBody['observability'];

/** State of the service, of which GET /health is made. `withNames`: whether the caller may see data of other clients. */
interface ServiceState {
  readonly verdict: { readonly status: HealthBody['status']; readonly reasons: ReasonBody[] };
  readonly startedAt: string;
  readonly drainEndsAt: string | null;
  readonly processCounts: ObservedState['cli_processes'];
  visible(withNames: boolean): AtLeastOne<ModelCli>;
  workers(withPids: boolean): ObservedState['workers'];
  checks(since: number | null, withNames: boolean): ReadinessBody[];
}

/** Counters of jobs since the start, by their names in the status. */
type JobTotals = Readonly<
  Record<'jobs' | 'failed_jobs' | 'cancelled_jobs' | 'refused' | 'output_tokens', number> &
    Record<'first_deltas' | 'first_delta_seconds', number>
>;

/** Parts of the primary that features may use. All of them exist before the first job. */
export interface PrimaryCore {
  readonly host: Pick<Host, 'termination' | 'clock' | 'random' | 'product' | 'heap' | 'searchPath' | 'defects'> & {
    readonly log: Logger<string>;
  };
  readonly store: Pick<Store, 'upkeep' | 'isShared'>;
  readonly clients: Pick<
    Clients,
    'hasAccess' | 'optionsOf' | 'recordPerson' | 'recordJobGroups' | 'keyClients' | GroupMembers | KeyMembers
  >;
  readonly fileFaults: FileFaults;
  /** Warnings of the start. */
  readonly warnings: readonly string[];
  readonly addresses: Pick<Addresses, 'main' | 'ports'>;
  readonly clis: AtLeastOne<
    Pick<ModelCli, 'name' | 'names' | 'account' | 'label' | 'health' | 'publicName' | 'jobs' | 'lastUsedAt' | 'adapter'>
  >;
  readonly router: ModelRouter;
  readonly catalog: Pick<ModelCatalog, 'list' | 'resolveName'>;
  /** Starts programs that read files of clients. */
  readonly readerLauncher: Pick<Launcher, 'launch'>;
  readonly config: Config;
  readonly localJobs: LocalJobs;
  /** Admits the jobs of requests. */
  readonly jobEntry: Pick<JobEntry, 'admit' | 'countRefusal' | 'recentlyRefused'>;
  /** Calls hooks of all features about background jobs. */
  readonly jobHooks: Pick<FeatureHooks, 'admitBackground' | 'backgroundEnded' | 'precedenceOver' | 'reservedSlots'>;
  readonly turnGate: Pick<TurnGate, 'admitting'>;
  readonly conversations: ReadableConversations;
  readonly conversationChanges: ConversationChanges;
  /** Conversations of this host, and what stores their turns. */
  readonly ownConversations: Pick<ConversationStore, 'turn' | 'snapshot'>;
  readonly journal: TurnResources['journal'];
  readonly tokens: Pick<TokenCounter, 'countTokens'>;
  readonly sizes: Pick<LearnedSizes, 'factorOf' | 'recordFactor'>;
  readonly runner: Pick<JobRunner, 'busySeconds' | 'dismiss' | BackgroundMember>;
  readonly openJobs: Pick<OpenJobs, 'running'>;
  readonly room: Pick<
    WaitingRoom,
    'active' | 'limits' | 'runningAtGate' | 'waitingAtGate' | 'waiting' | 'fullSince' | 'waitingClients'
  >;
  readonly workers: FeatureWorkers;
  /** Returns the use of the limits of a client; with null, of all limits. Call it only after the start: not all features exist before. */
  readonly limitUsesOf: (client: ClientText | null) => readonly LimitUse[];
  /** Parts of the features that come earlier in the list. */
  readonly earlierParts: readonly PrimaryPart[];
  /** Kinds of data that features store. Call it only after the start: not all features exist before. */
  readonly storedKinds: () => readonly StoredKind[];
  /** Returns what all features have of a client outside of the store. Call it only after the start. */
  readonly recordsOf: (client: ClientText) => ClientRecords;
  /** Sends the keys to the workers after a feature has changed its own. Resolves when they use them. */
  readonly sendKeys: () => Promise<void>;
  /** Whether all features allow that contents of a client are stored. */
  readonly mayStore: (client: ClientText) => boolean;
  /** Asks each feature before an act. Rejects if one refuses it. Call it only after the start. */
  readonly beforeAct: (act: OperatorAct) => Promise<void>;
  /**
   * Resolves in a later round of the event loop, one caller per round. The readers of stored text, however many, then
   * cannot block other calls.
   */
  readonly yieldInOrder: () => Promise<void>;
  /** Throws if this client may not start this job at present: its access has ended, or a feature refuses the job. */
  readonly checkStart: (request: JobRequest, route: Route) => void;
  /** Call it only after the start. */
  readonly status: () => ServiceState;
  readonly metrics: { readonly jobs: { readonly totals: JobTotals } };
  /** Collects the figures of the workers. */
  readonly scrape: { fetchFigures(): Promise<void> };
  /** Whether each model CLI reports what a job costs. */
  readonly reportsCosts: boolean;
}

/** Workers, as features call them. */
interface FeatureWorkers {
  /** Returns a worker that listens, for the calls of the feature; null if no worker listens at the moment. */
  nextPeer<C extends Calls>(): Pick<Peer<C, PrimaryCalls>, 'call'> | null;
}

/** Background job whose end is stored. */
export interface EndedBackgroundJob {
  readonly id: string;
  readonly request: Pick<JobRequest, 'client' | 'operation' | 'requestId'>;
  readonly form: JobForm;
  readonly end: JobEnd;
}

/** Hooks of a job, called in this order. */
interface JobHooks {
  /** Throws `validation_error` if the client may not name these models. Has no other effect. */
  checkModels?(request: JobRequest): void;
  /** Throws if the service must refuse this request now. Not called while the model CLI refuses all jobs. Has no other effect. */
  check?(request: JobRequest): void;
  /** Returns the rank of a job among those that wait; null for the usual one. */
  rank?(request: JobRequest): JobRank | null;
  /** Returns the gates of a job, by its client. Called at the admission, and again when groups have changed. */
  gatesOf?(request: JobRequest): readonly JobGate[];
  /**
   * Returns the group whose turns in the queue the client of a job shares with its other members; null if the client
   * has its own turns. Called like `gatesOf`.
   */
  shareOf?(request: JobRequest): CommonShare | null;
  /** Returns why jobs of others go before this one while it waits, as sentences. Never throws. */
  precedenceOver?(request: Spender): readonly string[];
  /** Returns the route of a job; null if the first one is right. Called at the admission, and again while the job waits. */
  route?(request: JobRequest, first: Route, rules: RouteRules): RouteChoice | null;
  /**
   * Throws if the request may not have this route: its program cannot serve the request, or its client may not use this
   * model at present. Called at the admission, again when the job gets its slot, and for each other route of the job. Has
   * no other effect.
   */
  checkRoute?(request: JobRequest, route: Route): void;
  /** Throws if the service must refuse this background job. `id`: id that a feature has chosen for it. */
  admit?(request: JobRequest, form: JobForm, id?: string): void;
  /** Throws if the service must refuse this job. Called when the job is admitted, and again when it gets its slot. */
  start?(request: JobRequest): void;
  /** Creates the observer of the steps of a job; returns null for a job that the feature does not trace. Never throws. */
  trace?(request: JobRequest, choice: RouteChoice): JobTrace | null;
  /** Puts the earlier text that a request continues before its history. Called when the job has its slot. */
  readEarlier?(request: JobRequest): Promise<JobRequest>;
  /** Returns the turn of a job as a program with these capabilities gets it. Rejects with the error of the job. */
  prepare?(turn: Turn, job: PreparedJob, extras: Capabilities): Promise<Turn>;
  /** Returns the translation of a turn with these tools of the client; `pass` gets all events. */
  translate?: TranslateTurn;
  /** Answers the turn of a job; null if the model can answer without the feature. */
  answer?(turns: AnswerTurns, turn: Turn): Promise<StrategyEnd> | null;
  /**
   * Returns another route after the route of a job has failed with this error; null if there is none. Called before the
   * move and again when the process has exited. `hasRoom`: whether a route is below its limits of running jobs.
   */
  failed?(job: RoutedJob, error: unknown, hasRoom: (route: Route) => boolean): RouteChoice | null;
  /** Called for each route that could not answer, when the job has moved to another one. Never throws. */
  moved?(request: JobRequest, from: Route, to: Route, reason: PassReason): void;
  /** Called for each answer that was not cut, with the tokens that the CLI has reported for its input. Never throws. */
  inputCounted?: JobObserver['inputCounted'];
  /** Called for each model that could not answer a job which another one answers, with what it has used. Never throws. */
  attemptEnded?(request: JobRequest, end: JobEnd, bill: Bill): void;
  /** Called once for each job when it has ended, with what it has used. Never throws. */
  jobEnded?(request: JobRequest, end: JobEnd, bill: Bill): void;
  /** Called once for each background job, when its end is stored. Never throws. */
  ended?(job: EndedBackgroundJob): void;
}

/** Metric that is read at each scrape, by the values of labels. */
export interface FeatureMetric {
  readonly name: string;
  readonly help: string;
  /** Names of the labels; empty for a single figure. */
  readonly labels: readonly string[];
  read(): number | Figures;
}

/** Records about a client by kind. */
type ClientRecords = Readonly<Record<string, readonly object[]>>;

/** Slots that are reserved for a group now. */
export interface ReservedSlots {
  readonly group: string;
  readonly slots: number;
  /** Running jobs of the group. */
  readonly running: number;
  /** Timestamp of the end of the reservation. */
  readonly until: string;
}

/** Part of a feature in the primary. */
export interface PrimaryPart {
  readonly job?: JobHooks;
  /** Limits web searches. Without a feature that has this, each job that may search is refused. */
  readonly searcher?: WebSearcher;
  /** Returns what the feature adds to the capabilities of the models of a program. */
  modelCapabilities?(extras: Capabilities): Partial<ModelCapabilities>;
  /** Whether contents of this client may be stored beyond its open requests and conversations. Never throws. */
  mayStore?(client: ClientText): boolean;
  /**
   * Removes what the feature has of these clients outside of the store, such as keys. Resolves with the numbers by kind.
   * May be called again.
   */
  removeClients?(isAmong: (client: ClientText) => boolean, by: Actor): Promise<Readonly<Record<string, number>>>;
  /**
   * Returns what the feature has of a client outside of the store, by kind, for its export. It contains no secret.
   * `removeClients` removes the same.
   */
  recordsOf?(client: ClientText): ClientRecords;
  /**
   * Called before each act of an administrator, such as a purge or a reload (`OperatorAct`). Rejects if it must be
   * refused.
   */
  beforeAct?(act: OperatorAct): Promise<void>;
  /** Handlers of the calls of the feature. */
  readonly handlers: Readonly<Record<string, (request: never, ...signal: never[]) => unknown>>;
  /** Metrics that never decrease. */
  readonly counters?: readonly FeatureMetric[];
  readonly gauges?: readonly FeatureMetric[];
  /** Slots that are reserved for groups now, for the status. */
  readonly reservedSlots?: readonly ReservedSlots[];
  /** Returns the use of the limits of a client; with null, of all limits. */
  limitUsesOf?(client: ClientText | null): readonly LimitUse[];
  /** What clients can do with each model because of the feature, as lists of models name it. */
  readonly modelAbilities?: readonly string[];
  /** Kinds of data that the feature stores. */
  readonly storedKinds?: readonly StoredKind[];
  /**
   * Reads the keys again that the feature adds to those of the operator. Called before the first job and each second.
   * Never rejects.
   */
  refreshKeys?(): Promise<void>;
  /** Returns warnings about the keys, at the start and after each change of the keys file. */
  findKeyWarnings?(): readonly string[];
  /** Called for each request of a client that is refused before it becomes a job. Never throws. */
  countRefusal?(client: ClientText): void;
  /** Called with the figures of a worker since its last report. Never throws. */
  figuresReported?(families: readonly FamilyFigures[]): void;
  /** Called when the state of the previous service has been restored. May be called again after a failure. */
  restored?(): Promise<void>;
  start?(): void;
  /** Called when the service begins to drain. */
  drain?(): void;
  /** Background jobs of the feature that have not ended on this host. */
  readonly openJobs?: readonly Job<BackgroundPart>[];
  /** Called when a job has entered or left the waiting room. */
  slotsChanged?(): void;
  /** Resolves when no background job of the feature runs that a drain must wait for. */
  idle?(): Promise<void>;
  /** Called before the remaining jobs are cut at the end of a drain. */
  cut?(): void;
  /** Returns the client, and its keys and sub-clients, as far as the feature has data of them that the store may not have. */
  clientsWith?(owner: ClientText): Promise<readonly ClientText[]>;
  /** Resolves when nothing waits to be stored that another host is about to remove. */
  flush?(): Promise<void>;
  /** Removes the data of a client that is in memory or that the store does not remove. Resolves with numbers by kind. */
  purgeClient?(client: ClientText): Promise<Counts>;
  /** Called every ten seconds, to remove expired data. */
  expire?(): void;
  /** Returns lines for the greeting in the terminal of the service, which can be reached at this URL. */
  bannerRows?(url: string): BannerRows;
  /** Resolves when the feature no longer uses the store. */
  stop?(): Promise<void>;
}

/** Creates the part of a feature in the primary. Nothing runs before `PrimaryPart.start`. */
export type CreatePrimaryPart = (core: PrimaryCore) => PrimaryPart;

/**
 * Checks each model CLI, and returns the set-up. Rejects with a ConfigFault for lines that the service would refuse. With
 * `asks`, the default model also answers a question.
 */
export type CheckSetup = (
  config: Config,
  host: Host,
  features: readonly PrimaryFeature[],
  asks: boolean,
) => Promise<CheckReport>;

/** Feature as the primary sees it. */
export interface PrimaryFeature<V extends FeatureVariables = FeatureVariables>
  extends SharedFeature<V>,
    ModelsCheck<V> {
  /** Tables of the feature in the store. A name must never change, and never have another meaning: a store has old rows. */
  readonly tables: readonly StoreTable[];
  /** Model CLIs that the feature adds. */
  readonly clis?: AdapterFamily;
  /** Loads the code of `prompt-relay check`. At most one feature has it. */
  loadCheck?(): Promise<CheckSetup>;
  /**
   * Opens the port at which a front checks the state of this host; null if it is closed. Rejects with the error of the
   * system. At most one feature has it.
   */
  openFront?(values: ValuesOf<V>, host: string, clock: Clock): Promise<Front | null>;
  /** Loads the code that contains each program in another way than in a process group. At most one feature has it. */
  loadContainments?(values: ValuesOf<V>): Promise<ChooseContainments>;
  /** Loads the code for further logins of model CLIs that the feature adds. */
  loadLogins?(): LoginProvider<V>;
  /** Kind of stores that the feature adds. */
  readonly store?: StoreProvider;
  /** Loads the code that these values need. */
  loadPrimary(values: ValuesOf<V>): Promise<CreatePrimaryPart>;
}
