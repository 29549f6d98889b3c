import { inLine } from '../shared/async.js';
import type { ClientText } from '../shared/client.js';
import { yieldToEventLoop } from '../shared/clock.js';
import { cliLimits } from '../shared/config/clis.js';
import type { Config } from '../shared/config/config.js';
import { applicableLines } from '../shared/config/keys-file.js';
import type { RemovalCause } from '../shared/conversation.js';
import type { DoorNames } from '../shared/features/feature.js';
import type { ReadinessEntry } from '../shared/health.js';
import type { PrimaryCalls, WorkerCalls } from '../shared/ipc/protocol.js';
import { describeError } from '../shared/log/logger.js';
import { type Phase, serviceExits } from '../shared/phase.js';
import { Signals } from '../shared/signals.js';
import { Clients, clientBounds } from './access/clients.js';
import { FileFaults } from './access/file-faults.js';
import { KeyAttempts } from './access/key-attempts.js';
import { watchKeysFile } from './access/keys-file.js';
import { RateLimit } from './access/rate-limit.js';
import { Removals } from './access/removals.js';
import { createLogins, type LoginSource } from './cli/logins.js';
import { type CatalogParts, KnownModels, ModelCatalog } from './cli/model-catalog.js';
import {
  type CliContext,
  closeClis,
  createModelClis,
  createReaderLauncher,
  forgetConversation,
  type ModelCli,
} from './cli/model-cli.js';
import { LearnedSizes } from './cli/model-sizes.js';
import type { WaitingJob } from './cli/pool/standby-keeper.js';
import { Redactor, secretsOf } from './cli/process/redactor.js';
import { type ModelNames, ModelRouter } from './cli/route.js';
import { conversationLimits } from './conversations/conversation-limits.js';
import { ConversationStore } from './conversations/conversation-store.js';
import { JournaledConversations } from './conversations/journaled-conversations.js';
import { UnstoredConversations } from './conversations/unstored-conversations.js';
import type { CreatePrimaryPart, PrimaryCore } from './features/feature.js';
import { FeatureHooks } from './features/feature-hooks.js';
import type { CircuitStatus } from './health/circuit.js';
import { SeenClients } from './health/evidence.js';
import type { Hosts } from './hosts/hosts.js';
import { JobEntry } from './jobs/job-entry.js';
import { JobRunner } from './jobs/job-runner.js';
import { LocalJobs } from './jobs/local-jobs.js';
import { startCheck } from './jobs/start-check.js';
import { WaitingRoom } from './jobs/waiting-room.js';
import { createBanner } from './lifecycle/banner.js';
import type { Front } from './lifecycle/front.js';
import type { Host } from './lifecycle/host.js';
import { Supervisor } from './lifecycle/supervisor.js';
import { isPersonal } from './observe/degraded.js';
import { logCheck, observeCli, observeJobs } from './observe/observers.js';
import { PrimaryMetrics, storeListener } from './observe/primary-metrics.js';
import { Scrape } from './observe/scrape.js';
import { addServiceGauges } from './observe/state-metrics.js';
import { Status } from './observe/status.js';
import type { Store } from './store/contract/store.js';
import { SchemaChecker } from './threads/schema-checker.js';
import { TokenCounter } from './threads/token-counter.js';
import { type Addresses, urlOf } from './workers/addresses.js';
import { Workers, type WorkersObserver } from './workers/workers.js';

const maxWaitingBytes = 64 * 1024 * 1024;
/** Time for a worker to receive a request and send its answer, beyond the two time limits of a job. */
const exchangeOverheadMs = 60_000;

/** Inputs of the service. */
export interface StartInput {
  readonly config: Config;
  readonly host: Host;
  /** Model CLIs, and the meanings of model names. */
  readonly names: ModelNames;
  readonly addresses: Addresses;
  /** Answers the health checks of a load balancer; null if none is configured. */
  readonly front: Front | null;
  readonly store: Store;
  /** Further logins of the CLIs; null if no feature adds any. */
  readonly loginSource: LoginSource | null;
  /** Parts that exist only if several hosts share a store; otherwise null. */
  readonly hosts: Hosts | null;
  /** Creates the parts of the features, in the order of their list. */
  readonly createFeatures: readonly CreatePrimaryPart[];
  /** Calls from workers, including the calls of features. */
  readonly calls: PrimaryCalls;
  /** Calls to workers, including the calls of features. */
  readonly workerCalls: WorkerCalls;
  /** Routes and APIs of features that metrics name. */
  readonly doorNames: DoorNames;
  readonly warnings: readonly string[];
}

/** Calls from a part to parts that are created after it. */
interface PrimarySignals {
  /** A job has entered or left the waiting room. */
  'slots-changed': () => void;
  'conversation-removed': (cause: RemovalCause, id: string) => void;
  /** Another host has continued the conversation. */
  'conversation-outdated': (id: string) => void;
  'circuit-changed': (status: CircuitStatus) => void;
  /** A readiness check of the first CLI has ended. */
  'cli-checked': (entry: ReadinessEntry) => void;
  'logins-changed': (removed: readonly ModelCli[]) => void;
  'worker-listening': () => void;
  /** No worker has ever listened, and the primary has given up starting them. */
  'workers-unavailable': (reason: string) => void;
  /** Returns the jobs of this CLI that are next to get a slot. */
  'list-waiting-jobs': (cli: ModelCli) => readonly WaitingJob[];
  /** Returns the ids of conversations that waiting jobs will continue. */
  'list-awaited-conversations': () => ReadonlySet<string>;
  'read-status': () => Status;
  'read-phase': () => Phase;
  /** Returns the remaining seconds of a drain. */
  'read-drain-seconds': () => number;
  'phase-changed': (phase: Phase) => void;
}

type PartSignals = Signals<PrimarySignals>;
type Hooked = StartInput & { readonly features: FeatureHooks };
type Access = ReturnType<typeof createAccess>;
type Conversations = ReturnType<typeof createConversations>;
type Observation = ReturnType<typeof createObservation>;
type Counters = ReturnType<typeof createCounters>;
type Models = ReturnType<typeof createModels>;
/** Parts created before the jobs. */
type EarlierParts = StartInput &
  Access &
  Conversations &
  Observation &
  Counters &
  Models & { readonly room: WaitingRoom; readonly features: FeatureHooks } & Pick<PrimaryCore, 'yieldInOrder'>;
type Jobs = ReturnType<typeof createJobs>;
type WorkerParts = ReturnType<typeof createWorkers>;

/** Parts of the primary, by name. */
export type Parts = ReturnType<typeof compose>;

/**
 * Creates the parts of the primary in stages. A part gets earlier parts in its constructor; calls to later parts are
 * signals. No part runs before `Service.start`.
 */
export function compose(input: StartInput) {
  const signals: PartSignals = new Signals<PrimarySignals>();
  const access = createAccess(input);
  const room = createWaitingRoom(input, access, signals);
  const features = new FeatureHooks([access.removals.part], input.host.defects.record);
  const conversations = createConversations({ ...input, features }, signals);
  const observation = createObservation({ ...input, features }, room, conversations);
  const counters = createCounters(input);
  const models = createModels(input, access, { ...observation, ...counters, features }, signals);
  const inOrder = inLine();
  const earlier = {
    ...{ ...input, ...access, room, ...conversations, ...observation, ...counters, ...models, features },
    yieldInOrder: () => inOrder(yieldToEventLoop),
  };
  const jobs = createJobs(earlier, signals);
  const workers = createWorkers(earlier, signals);
  const readStatus = () => signals.send('read-status');
  features.createParts(input.createFeatures, coreOf({ ...earlier, ...jobs, ...workers, status: readStatus }));
  const supervisor = createSupervisor({ ...earlier, ...jobs, ...workers }, signals);
  const status = new Status({ ...earlier, ...jobs, ...workers, supervisor });
  signals.on('read-status', () => status);
  const parts = { ...earlier, ...jobs, ...workers, supervisor, status };
  connectParts(parts, signals);
  addServiceGauges(parts.metrics.registry, parts);
  return parts;
}

/** Returns the parts that features may use. */
function coreOf(
  parts: EarlierParts & Jobs & WorkerParts & Pick<PrimaryCore, 'status'>,
): Parameters<FeatureHooks['createParts']>[1] {
  // the channel knows the calls of all features, but its type does not
  const workers = parts.workers as unknown as PrimaryCore['workers'];
  const { names, replica, conversations, journaledConversations } = parts;
  return {
    ...{ ...parts, workers, reportsCosts: names.reportCosts, checkStart: startCheck(parts) },
    ...{ conversations: replica ?? conversations, ownConversations: conversations },
    conversationChanges: replica ?? journaledConversations,
  };
}

/** Sets the handlers of all signals. */
function connectParts(parts: Parts, signals: PartSignals): void {
  const { host, clis, logins, metrics, room, runner, workers, supervisor } = parts;
  const updateStandby = () => {
    for (const { standby, isInUse } of clis) if (isInUse) standby.update();
  };
  signals.on('slots-changed', () => {
    updateStandby();
    parts.features.slotsChanged();
  });
  signals.on('conversation-removed', (cause, id) => {
    metrics.conversations.countRemoval(cause);
    forgetConversation(logins.all, id);
    parts.journal.removed(id, cause !== 'deleted'); // a deleted one has already been removed from the store
  });
  signals.on('conversation-outdated', (id) => forgetConversation(logins.all, id));
  signals.on('circuit-changed', ({ state }) => {
    runner.moves.moveWaiting((cli, client) => logins.mayServe(cli, client));
    if (state !== 'open') room.next(); // background jobs may start
    updateStandby();
  });
  signals.on('cli-checked', (entry) => {
    const shared = clis.find((cli) => cli.name === entry.cli && !isPersonal(cli));
    if (entry.account === shared?.names.account) parts.banner.showCheck(entry);
  });
  signals.on('logins-changed', (removed) => {
    applyLogins(parts, removed);
    updateStandby();
  });
  signals.on('worker-listening', () => {
    if (supervisor.becomeReady()) reportReady(parts);
  });
  signals.on('workers-unavailable', (reason) => {
    host.log.error('workers_unavailable', { reason });
    void supervisor.fail(serviceExits.unavailable);
  });
  signals.on('list-waiting-jobs', (cli) => runner.openJobs.nextJobs(cli));
  signals.on('list-awaited-conversations', () => runner.openJobs.awaited);
  signals.on('read-phase', () => supervisor.phase);
  signals.on('read-drain-seconds', () => supervisor.drainSecondsLeft);
  signals.on('phase-changed', (phase) => {
    void workers.callAll((peer) => peer.call('phase', { phase }));
    host.systemd.announce(phase);
    updateStandby();
    if (phase === 'draining') parts.features.drain();
  });
}

/** Lets the jobs, the metrics and the redactor know the changed logins. */
function applyLogins(parts: Parts, removed: readonly ModelCli[]): void {
  const { host, clients, logins, redactor, runner, metrics, room } = parts;
  for (const warning of logins.warnings(clients.keyClients)) host.log.warn('config_warning', { warning });
  redactor.replaceTokens(logins.secrets);
  runner.moves.moveWaiting((cli, client) => logins.mayServe(cli, client));
  for (const cli of [...removed, ...logins.unused]) metrics.readiness.removeCli(cli);
  room.next(); // a limit may have been raised
}

/** Creates what decides which client may send a request. */
function createAccess({ config, host, names, hosts }: StartInput) {
  const { clock, log } = host;
  const clients = new Clients(config, clock);
  clients.replaceNamedKeys(applicableLines(config, names.reportCosts));
  const fileFaults = new FileFaults();
  const ratesOf = (client: ClientText) => clients.ratesOf(client);
  const rateLimit = hosts?.rateLimit(ratesOf) ?? new RateLimit(ratesOf, clock);
  const keyAttempts = new KeyAttempts(clock, (client, seconds) => log.warn('wrong_keys', { client, seconds }));
  const redactor = new Redactor(secretsOf(host.env, config), (digest) => clients.hasDigest(digest));
  return { clients, fileFaults, rateLimit, keyAttempts, redactor, removals: new Removals() };
}

function createWaitingRoom({ config, host }: StartInput, { clients }: Access, signals: PartSignals): WaitingRoom {
  const { maxConcurrent: maxActive, maxQueue: maxWaiting } = config;
  const boundsOf = clientBounds(config, (client) => clients.optionsOf(client));
  const limits = { maxActive, maxWaiting, maxWaitingBytes, cliLimits: cliLimits(config.clis) };
  const room = new WaitingRoom(limits, host.clock, boundsOf, () => signals.send('slots-changed'));
  clients.onChange = () => room.readRules();
  return room;
}

function createConversations({ config, host: { clock }, store, hosts, features }: Hooked, signals: PartSignals) {
  const onRemoved = (cause: RemovalCause, id: string) => signals.send('conversation-removed', cause, id);
  const conversations = new ConversationStore(conversationLimits(config), clock, onRemoved);
  const mayStore = (client: ClientText) => features.mayStore(client);
  const journal = new UnstoredConversations(store.conversations, mayStore, hosts !== null);
  const journaledConversations = new JournaledConversations(conversations, journal, clock);
  const replica = hosts?.replicaOf(conversations, (id) => signals.send('conversation-outdated', id)) ?? null;
  return { conversations, journal, journaledConversations, replica, turnGate: conversations.turnGate };
}

function createObservation(
  { config, host, names, store, doorNames, features }: Hooked,
  room: WaitingRoom,
  { conversations }: Conversations,
) {
  const { clock, log } = host;
  const metrics = new PrimaryMetrics(
    room,
    conversations,
    names.clis.map(({ name }) => name),
    doorNames,
  );
  const scrape = new Scrape(
    metrics.registry,
    clock,
    () => metrics.countScrapeFailure(),
    (families) => features.figuresReported(families),
  );
  store.observe(storeListener(log, metrics));
  const banner = createBanner(config, host, names.clis[0].adapter.name);
  return { metrics, scrape, banner };
}

/** Creates the threads that count tokens and check schemas, and the knowledge about the tokens of models. */
function createCounters({ config, host: { clock, log } }: StartInput) {
  const onError = (error: unknown) => log.error('internal_error', { error: describeError(error) });
  const tokens = new TokenCounter(clock, onError);
  const sizes = new LearnedSizes(config.modelSizesFile, log);
  return { tokens, schemas: new SchemaChecker(clock, onError), sizes };
}

/** Creates the model CLIs, and what chooses among them. */
function createModels(
  { config, host, names, loginSource }: StartInput,
  { clients, fileFaults, redactor }: Access,
  { metrics, sizes, features }: Observation & Counters & { readonly features: FeatureHooks },
  signals: PartSignals,
) {
  const { clock, log } = host;
  const seenClients = new SeenClients();
  const onChecked = (entry: ReadinessEntry) => {
    metrics.readiness.recordCheck(entry);
    if (entry.cli === names.clis[0].name) signals.send('cli-checked', entry);
    logCheck(entry, names.clis.length > 1, log);
  };
  const context: CliContext = {
    observerOf: (cli) => observeCli(cli, metrics.cliOf(cli.names), log),
    onChecked,
    onCircuit: (status) => signals.send('circuit-changed', status),
    waitingJobs: (cli) => signals.send('list-waiting-jobs', cli),
    awaited: () => signals.send('list-awaited-conversations'),
    isReady: () => signals.send('read-phase') === 'ready',
    redactor,
    clients: seenClients,
  };
  const serials = { last: 0 }; // all CLIs number their processes together
  const serviceClis = createModelClis(config, host, names, context, serials);
  const featureOptionsOf = (client: ClientText) => clients.optionsOf(client).featureOptions;
  const onChange = (removed: readonly ModelCli[]) => signals.send('logins-changed', removed);
  const loginParts = { config, host, names, serials, context, fileFaults, featureOptionsOf, onChange };
  const logins = createLogins(loginSource, serviceClis, loginParts);
  redactor.replaceTokens(logins.secrets);
  for (const cli of logins.unused) metrics.readiness.removeCli(cli);
  const routeOptionsOf = (client: ClientText) => ({
    models: clients.optionsOf(client).models,
    groupModels: clients.groupModelsOf(client),
  });
  const router = new ModelRouter(names, serviceClis, routeOptionsOf, logins);
  const readerLauncher = createReaderLauncher(host, serials);
  const capabilitiesOf: CatalogParts['capabilitiesOf'] = (extras) => features.modelCapabilities(extras);
  const catalogParts = { config, clock, sizes, capabilitiesOf, firstOf: (cli: ModelCli) => logins.firstOf(cli) };
  const catalog = new ModelCatalog(serviceClis, router, catalogParts);
  const knownModels = new KnownModels({ router, catalog, clock });
  return { clis: logins.clis, logins, seenClients, router, catalog, knownModels, readerLauncher };
}

function createJobs(parts: EarlierParts, signals: PartSignals) {
  const { config, host, store } = parts;
  const { room, conversations, clis, router, knownModels, redactor } = parts;
  const { metrics, sizes, tokens, schemas } = parts;
  const { clock, log } = host;
  const listeners = { clients: metrics.clients, features: parts.features, log };
  const runner = new JobRunner(
    {
      ...{ room, clis, router, conversations, schemas, knownModels, redactor, clock },
      clients: parts.seenClients,
      journal: parts.journal,
      observer: observeJobs({ ...listeners, jobs: metrics.jobs, sizes }),
      countTokens: (texts, client) => tokens.countUrgently(texts, client),
      checkStart: startCheck(parts),
      isStoreUp: () => store.isUp,
      features: parts.features,
    },
    config,
  );
  const { openJobs } = runner;
  const localJobs = new LocalJobs(openJobs, () => parts.features.openJobs);
  return { runner, openJobs, localJobs, jobEntry: createJobEntry(parts, signals) };
}

function createJobEntry(parts: EarlierParts, signals: PartSignals): JobEntry {
  const { host, metrics } = parts;
  return new JobEntry({
    ...parts,
    phase: () => signals.send('read-phase'),
    drainSecondsLeft: () => signals.send('read-drain-seconds'),
    ...{ jobMetrics: metrics.jobs, clientMetrics: metrics.clients, clock: host.clock },
    noteActivity: () => host.heap.touch(),
  });
}

function createWorkers(parts: EarlierParts, signals: PartSignals) {
  const { config, host, names, addresses, clients, fileFaults, metrics, scrape } = parts;
  const { clock, log, defects } = host;
  const maxExchangeMs = config.queueTimeoutMs + config.executionMs + exchangeOverheadMs;
  const { calls, workerCalls } = parts;
  const settings = { size: config.workers, maxExchangeMs, fds: addresses.fds, calls, workerCalls };
  const observer: WorkersObserver = {
    workerListening: (worker) => {
      scrape.addWorker(worker);
      signals.send('worker-listening');
    },
    workersUnavailable: (reason) => signals.send('workers-unavailable', reason),
    figuresReported: (worker, families) => scrape.addFigures(worker, families),
    workerLeft: (worker) => scrape.removeWorker(worker),
    workerRestarted: (cause) => metrics.countRestart(cause),
    workerFailed: () => defects.countWorker(),
  };
  const workers = new Workers(settings, observer, clock, log);
  const sendKeys = () => {
    for (const { pool } of parts.logins.all) pool.forgetTenants();
    return workers.callAll((peer) => peer.call('keys', clients.workerKeys));
  };
  const keysParts = {
    ...{ clients, keyOptions: config.keyOptions, fileFaults, log, reportsCosts: names.reportCosts },
    onChange: sendKeys,
    findWarnings: () => parts.features.findKeyWarnings(),
  };
  return { workers, sendKeys, keysFile: watchKeysFile(config.keysFile, keysParts, clock) };
}

function createSupervisor(parts: EarlierParts & Jobs & WorkerParts, signals: PartSignals): Supervisor {
  const { config, host, addresses, front, store, room, logins, runner, workers, features } = parts;
  return new Supervisor(config.drainMs, host.clock, host.log, {
    idle: async () => {
      await features.idle();
      await room.untilIdle();
    },
    counts: () => {
      // Waiting background jobs count only if no store has them: otherwise the next service runs them.
      const inBackground = store.kind === 'memory' ? room.waitingInBackground.length : 0;
      return { running: room.active, queued: room.waiting + inBackground };
    },
    cutAll: (reason) => {
      features.cut();
      runner.openJobs.cutAll(reason);
    },
    retireWorkers: () => workers.retireAll(),
    endProcesses: async () => {
      for (const { health, standby } of logins.all) {
        health.stopChecks();
        standby.stopStandby();
      }
      await closeClis(logins.all, host);
    },
    stopWorkers: async (limitMs) => {
      addresses.close(); // otherwise clients would wait for a worker that never starts
      front?.closePort();
      const isAllSent = await workers.stop(limitMs);
      await features.stop();
      await parts.sizes.untilWritten();
      await store.close();
      return isAllSent;
    },
    onPhase: (phase) => signals.send('phase-changed', phase),
    exit: (code) => host.exit(code),
  });
}

/** Reports the addresses of the service. */
function reportReady({ host, addresses, front, banner, features }: Parts): void {
  const { main, ports } = addresses;
  const portFields = Object.fromEntries(ports.map(({ name, address }) => [`${name}_port`, address.port]));
  host.log.info('service_ready', { ...main, agent_port: front?.port, ...portFields });
  const portUrls = ports.map(({ clients, address }) => [clients, urlOf(address)] as const);
  const url = urlOf(main);
  banner.showAddresses(url, [...features.bannerRows(url), ...portUrls]);
}
