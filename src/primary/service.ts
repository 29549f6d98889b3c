import { oneAtATime } from '../shared/async.js';
import { delay } from '../shared/clock.js';
import { localUrl } from '../shared/config/addresses.js';
import type { Config } from '../shared/config/config.js';
import type { ReadinessEntry } from '../shared/health.js';
import type { JobRequest } from '../shared/job.js';
import { describeError } from '../shared/log/logger.js';
import { serviceExits } from '../shared/phase.js';
import { Budgets } from './access/budgets.js';
import { Clients, clientBounds } from './access/clients.js';
import { KeyAttempts } from './access/key-attempts.js';
import { watchKeysFile } from './access/keys-file.js';
import { RateLimit, SharedRateLimit } from './access/rate-limit.js';
import { UserConnections } from './access/user-connections.js';
import { apiHandlers, workerSettings } from './api/handlers.js';
import { storeUpkeep } from './api/purge-client.js';
import { KnownModels, ModelCatalog } from './cli/model-catalog.js';
import { closeClis, createModelClis, forgetConversation, type ModelCli } from './cli/model-cli.js';
import { Redactor, secretsOf } from './cli/process/redactor.js';
import { type ModelNames, ModelRouter } from './cli/route.js';
import { conversationLimits } from './conversations/conversation-limits.js';
import { ConversationStore } from './conversations/conversation-store.js';
import { JournaledConversations } from './conversations/journaled-conversations.js';
import type { CircuitStatus } from './health/circuit.js';
import { SeenClients } from './health/evidence.js';
import type { HealthAgent } from './hosts/health-agent.js';
import type { Hosts } from './hosts/hosts.js';
import { Claims } from './idempotency/claims.js';
import { BackgroundJobs } from './jobs/background-jobs.js';
import { ClientJobs } from './jobs/client-jobs.js';
import { JobRunner } from './jobs/job-runner.js';
import { spansOfJobs } from './jobs/job-spans.js';
import { StoredJobs } from './jobs/stored-jobs.js';
import { WaitingRoom } from './jobs/waiting-room.js';
import { createBanner } from './lifecycle/banner.js';
import type { Host } from './lifecycle/host.js';
import { Supervisor } from './lifecycle/supervisor.js';
import { addBudgetGauge } from './observe/job-metrics.js';
import { LastHour } from './observe/last-hour.js';
import { logCheck, observeBackground, observeCli, observeJobs, toolsIgnored } from './observe/observers.js';
import { PrimaryMetrics, storeListener } from './observe/primary-metrics.js';
import { Scrape } from './observe/scrape.js';
import type { SpanExporter } from './observe/span-exporter.js';
import { addServiceGauges } from './observe/state-metrics.js';
import { Status, setupReportOf } from './observe/status.js';
import { StatusFeed } from './observe/status-feed.js';
import { UsageJournal } from './observe/usage-journal.js';
import { UsageLedger } from './observe/usage-ledger.js';
import { responseLimits, StoredResponses } from './responses/stored-responses.js';
import type { Store } from './store/contract/store.js';
import { SchemaChecker } from './threads/schema-checker.js';
import { TokenCounter } from './threads/token-counter.js';
import type { Addresses } from './workers/addresses.js';
import { Workers, type WorkersObserver } from './workers/workers.js';

const maxWaitingBytes = 64 * 1024 * 1024;
/** Time for a worker to receive a request and send its answer, beyond the two time limits of a job. */
const exchangeOverheadMs = 60_000;
const expiryCheckMs = 10_000;
const backgroundCheckMs = 1000;
/** Pause between scrapes: /metrics needs no API key by default, and a scrape costs milliseconds in every process. */
const betweenScrapesMs = 100;
/** How often budgets are refreshed from a store that several hosts share. */
const budgetRefreshMs = 5000;

/** Inputs of the service. */
export interface StartInput {
  readonly config: Config;
  readonly host: Host;
  /** Model CLIs, and the meanings of model names. */
  readonly names: ModelNames;
  readonly addresses: Addresses;
  /** Null if no load balancer checks the health of this host. */
  readonly agent: HealthAgent | null;
  readonly store: Store;
  /** Null unless several hosts share the store. */
  readonly hosts: Hosts | null;
  /** Null if no spans are exported. */
  readonly spans: SpanExporter | null;
  readonly warnings: readonly string[];
}

/**
 * Builds all parts of the primary in order: each part knows only earlier ones. Nothing runs before `start`, so
 * callbacks may use parts created later.
 */
function compose(input: StartInput) {
  const { config, host, names, addresses, agent, hosts, store, spans } = input;
  const { clock, log, systemd } = host;

  // Clients, slots and conversations
  const clients = new Clients(config);
  const optionsOf = (client: string) => clients.optionsOf(client);
  const rateOf = (client: string) => clients.rateOf(client);
  const rateLimit = store.windows === null ? new RateLimit(rateOf, clock) : new SharedRateLimit(rateOf, store.windows);
  const keyAttempts = new KeyAttempts(clock, (client, seconds) => log.warn('wrong_keys', { client, seconds }));
  const redactor = new Redactor(secretsOf(host.env, config), (digest) => clients.hasDigest(digest));
  const { maxConcurrent: maxActive, maxQueue: maxWaiting, cliLimits } = config;
  const boundsOf = clientBounds(config, optionsOf);
  const room = new WaitingRoom({ maxActive, maxWaiting, maxWaitingBytes, cliLimits }, clock, boundsOf, () => {
    standbyChanged();
    feeder?.changed();
  });
  const conversations = new ConversationStore(conversationLimits(config), clock, (cause, id) => {
    metrics.conversations.removed(cause);
    forgetConversation(clis, id);
    if (cause !== 'deleted') store.conversations.forget(id); // a deletion has already removed it from the store
  });
  const kept = new JournaledConversations(conversations, store.conversations, clock);
  const onStale = (id: string) => forgetConversation(clis, id);
  const shared = hosts?.replicaOf(conversations, onStale) ?? null;
  const { turnGate } = conversations;
  const responses = new StoredResponses(store.responses, responseLimits(config), clock);

  // Figures
  const cliNames = names.clis.map(({ name }) => name);
  const metrics = new PrimaryMetrics(room, conversations, cliNames);
  const lastHour = new LastHour(clock);
  const usage = new UsageLedger(clock);
  const usageJournal = new UsageJournal(usage, store.usage, clock);
  const budgets = new Budgets(clock, (holder) => clients.budgetOf(holder));
  const counted = budgets.beside(usage);
  const scrape = new Scrape(
    metrics.registry,
    clock,
    () => metrics.scrapeFailed(),
    (families) => lastHour.counted(families),
  );
  store.observe(storeListener(log, metrics));

  const onThreadError = (error: unknown) => log.error('internal_error', { error: describeError(error) });
  const tokens = new TokenCounter(clock, onThreadError);
  const schemas = new SchemaChecker(clock, onThreadError);

  // Model CLIs
  const banner = createBanner(config, host, names.clis[0].adapter.name);
  const clientsSeen = new SeenClients();
  const observerOf = (cli: string) => observeCli(cli, metrics.cliOf(cli), log);
  const onChecked = (entry: ReadinessEntry) => {
    metrics.readiness.checked(entry);
    if (entry.cli === names.clis[0].name) banner.checked(entry);
    logCheck(entry, names.clis.length > 1, log);
  };
  const onCircuit = ({ state }: CircuitStatus) => {
    if (state === 'open') runner.cutHeld();
    else room.next(); // background jobs may start
    standbyChanged();
  };
  const clis = createModelClis(config, host, names, {
    observerOf,
    onChecked,
    onCircuit,
    waitingJobs: (cli) => runner.next(cli),
    awaited: () => runner.awaited,
    isReady: () => supervisor.phase === 'ready',
    redactor,
    clients: clientsSeen,
  });
  const standbyChanged = () => {
    for (const { standby } of clis) standby.changed();
  };
  const router = new ModelRouter(names, clis, (client) => optionsOf(client).models);
  const catalog = new ModelCatalog(clis, router, config, clock);
  const knownModels = new KnownModels({ router, catalog, clock });

  // Jobs
  const observer = observeJobs({ jobs: metrics.jobs, clients: metrics.clients, usage: counted, lastHour, log });
  const ofJobs = {
    room,
    clis,
    router,
    clients: clientsSeen,
    conversations,
    responses,
    schemas,
    knownModels,
    observer,
    redactor,
    clock,
    checkBudget: (client: string) => budgets.check(client),
    spansOf: spans && spansOfJobs(spans, clock),
  };
  const journal = store.conversations;
  const countTokens = (texts: readonly string[], client: string) => tokens.countUrgently(texts, client);
  const runner = new JobRunner({ ...ofJobs, journal, countTokens, isStoreUp: () => store.isUp }, config);
  const dismiss = (request: JobRequest, reason: Error) => void runner.dismiss(request, reason);
  const stored = new StoredJobs(store.jobs, config.jobTtlMs, clock);
  const others = hosts?.remoteJobs(dismiss) ?? stored;
  const backgroundObserver = observeBackground({ clients: metrics.clients, usage: counted, lastHour, log });
  const ofBackground = { runner, room, turnGate, store: store.jobs, stored, others, clock };
  const background = new BackgroundJobs({ ...ofBackground, observer: backgroundObserver }, config);
  const clientJobs = new ClientJobs(background, { ...ofBackground, observer: backgroundObserver });
  const feeder = hosts?.puller(background, clientJobs) ?? null;
  const claims = new Claims(store.answers, clock, () => runner.busySeconds);

  // Phases, standby processes, workers
  const supervisor = new Supervisor(config.drainMs, clock, log, {
    idle: async () => {
      await background.idle();
      await room.idle();
    },
    counts: () => {
      // a durable store keeps them for the next service
      const inBackground = store.jobs.isDurable ? 0 : room.waitingInBackground.length;
      return { running: room.active, queued: room.waiting + inBackground };
    },
    cutAll: (reason) => {
      background.stop();
      runner.cutAll(reason);
    },
    retireWorkers: () => workers.retireAll(),
    endProcesses: async () => {
      for (const { health, standby } of clis) {
        health.stop();
        standby.stop();
      }
      await closeClis(clis, host);
    },
    stopWorkers: async (limitMs) => {
      addresses.close(); // otherwise clients would wait for a worker that never starts
      agent?.close();
      const isAllSent = await workers.stop(limitMs);
      await spans?.close();
      await usageJournal.close();
      await store.close();
      return isAllSent;
    },
    entered: (phase) => {
      workers.tell((peer) => peer.call('phase', { phase }));
      systemd.announce(phase);
      standbyChanged();
      if (phase === 'draining' && store.jobs.isDurable) background.stop(); // the next service runs the waiting jobs
    },
    exit: (code) => host.exit(code),
  });
  const maxExchangeMs = config.queueTimeoutMs + config.executionMs + exchangeOverheadMs;
  const workersObserver: WorkersObserver = {
    listening: (worker) => {
      scrape.joined(worker);
      if (!supervisor.becomeReady()) return;
      const ports = { agent_port: agent?.port, ollama_port: addresses.ollama?.port };
      log.info('service_ready', { ...addresses.main, ...ports });
      banner.serving(urlOf(addresses.main), addresses.ollama && urlOf(addresses.ollama));
    },
    unavailable: (reason) => {
      log.error('workers_unavailable', { reason });
      void supervisor.fail(serviceExits.unavailable);
    },
    counted: (worker, families) => scrape.counted(worker, families),
    left: (worker) => scrape.left(worker),
    restarted: (cause) => metrics.workerRestarted(cause),
    broke: () => host.defects.countWorker(),
  };
  const workers = new Workers({ size: config.workers, maxExchangeMs, fds: addresses.fds }, workersObserver, clock, log);
  const tellKeys = () => workers.tell((peer) => peer.call('keys', { keys: clients.forWorkers }));
  const keysFile = watchKeysFile(config.keysFile, clients, tellKeys, host, names.reportCosts);

  const status = { supervisor, room, runner, workers, clis, background, clientJobs, metrics, lastHour };
  const parts = {
    ...input,
    ...status,
    clients,
    rateLimit,
    keyAttempts,
    conversations,
    responses,
    kept,
    shared,
    turnGate,
  };
  const rest = { stored, feeder, claims, catalog, knownModels, tokens, schemas };
  addServiceGauges(metrics.registry, { ...parts, conversations });
  addBudgetGauge(metrics.registry, () => budgets.of(clients.names));
  return { ...parts, ...rest, usage, usageJournal, budgets, scrape, keysFile };
}

type Parts = ReturnType<typeof compose>;

/** Service as `main.ts` controls it. */
export class Service {
  readonly #parts: Parts;

  constructor(input: StartInput) {
    this.#parts = compose(input);
  }

  /**
   * Takes over the state of the previous service, at once or when the store can be opened. Must be called once, before
   * `start`.
   */
  async restore(): Promise<void> {
    const { conversations, usageJournal, store } = this.#parts;
    conversations.isRestored = false;
    if (store.kind !== 'memory') usageJournal.start();
    await store.restore(() => this.#takeOver());
  }

  /** Restores the state. May be called again after a failure. */
  async #takeOver(): Promise<void> {
    const { host, kept, usageJournal, budgets, background, store } = this.#parts;
    const conversations = await kept.restore();
    this.#parts.conversations.isRestored = true;
    if (store.kind !== 'memory') await usageJournal.restore();
    // Redis may be reachable only later, and the next refresh repeats this
    await budgets.refresh(usageJournal).catch(() => {});
    const jobs = await background.restore();
    if (store.kind !== 'memory') host.log.info('store_opened', { store: store.kind, conversations, jobs });
  }

  /** Whether it takes jobs, or has taken some. */
  get hasStarted(): boolean {
    return this.#parts.supervisor.phase !== 'starting';
  }

  start(workerProgram: string): void {
    const { host, hosts, agent, clis, workers, supervisor, room, keysFile } = this.#parts;
    logStart(this.#parts);
    workers.start(workerProgram, handlersOf(this.#parts));
    host.systemd.start({ phase: () => supervisor.phase, slots: room, workers });
    agent?.serve({ ...this.#parts, slots: room });
    hosts?.start();
    for (const { health } of clis) health.checks.start();
    keysFile?.start();
    for (const { standby, login } of clis) {
      login?.start();
      standby.start();
    }
    host.heap.touch();
    this.#startTimers();
  }

  #startTimers(): void {
    const { host, conversations, responses, stored, room, feeder, claims } = this.#parts;
    const { clock } = host;
    responses.expire();
    clock.every(expiryCheckMs, () => {
      for (const each of [conversations, responses, stored, claims]) each.expire();
    });
    const { store, budgets, usageJournal } = this.#parts;
    const refresh = () => void budgets.refresh(usageJournal).catch(() => {}); // the store logs its failures
    if (store.usage.report !== null) clock.every(budgetRefreshMs, refresh);
    clock.every(backgroundCheckMs, () => {
      room.check();
      feeder?.check();
    });
  }

  /**
   * Drains after the load balancer has noticed that this host leaves. A second call skips this wait; a call during the
   * drain cuts the remaining jobs.
   */
  async terminate(signal: string): Promise<void> {
    const { agent, host, supervisor } = this.#parts;
    // requests are still served until the load balancer has noticed
    const mayBeSent = agent !== null && supervisor.phase === 'ready';
    if (mayBeSent && agent.isAsked) host.log.info('leaving_front', { signal });
    if (!mayBeSent || (await agent.leave())) await supervisor.terminate(signal);
  }

  /**
   * Drains for a successor. If this process has opened the addresses itself, new connections would be refused, so it
   * terminates normally.
   */
  async handOver(signal: string): Promise<void> {
    const { agent, host, supervisor } = this.#parts;
    if (agent !== null || host.systemd.passedFds.length === 0) await this.terminate(signal);
    else await supervisor.handOver(signal);
  }

  /** Drains because the process that started the service has exited; has no effect during a drain. */
  async endWithStarter(): Promise<void> {
    if (this.#parts.supervisor.phase !== 'draining') await this.terminate('its starter has gone');
  }

  /** Replaces the workers. Jobs, the queue and conversations are unaffected. */
  async reload(): Promise<void> {
    const { host, supervisor, workers, keysFile } = this.#parts;
    if (supervisor.phase !== 'ready') return;
    host.log.info('reload_start');
    await keysFile?.reread();
    if (await host.systemd.reloading(workers.replaceAll())) host.log.info('reload_complete');
  }
}

function urlOf({ host, port }: Addresses['main']): string {
  return localUrl(host, port);
}

/** Returns the handlers of the calls of the workers. */
function handlersOf(parts: Parts) {
  const { config, host, addresses, supervisor, clients, metrics, scrape, clis, usage, usageJournal } = parts;
  const { conversations, shared, kept, catalog } = parts;
  const status = new Status(parts);
  const urls = { url: urlOf(addresses.main), ollamaUrl: addresses.ollama && urlOf(addresses.ollama) };
  const commandOf = ({ adapter }: ModelCli) => adapter.command; // without the arguments, which may include secrets
  const rest = () => delay(host.clock, betweenScrapesMs);
  const feedOf = (withNames: boolean) => new StatusFeed(status.live(withNames), host.clock);
  return apiHandlers({
    ...parts,
    phase: () => supervisor.phase,
    drainSecondsLeft: () => supervisor.drainSecondsLeft,
    workerSettings: () => workerSettings(config, clients.forWorkers, addresses, host, supervisor.phase),
    conversations: shared ?? conversations,
    kept: shared ?? kept,
    connections: new UserConnections(),
    jobMetrics: metrics.jobs,
    toolsIgnored: toolsIgnored(host, metrics.jobs),
    clientMetrics: metrics.clients,
    keyNames: () => clients.names,
    usage: {
      refused: (client) => usage.refused(client),
      report: (client, period) => usageJournal.report(client, period),
    },
    upkeep: storeUpkeep(parts),
    status,
    feeds: { named: feedOf(true), nameless: feedOf(false) },
    setup: async () =>
      setupReportOf({ ...parts, ...urls, keys: clients.names, commandOf, models: await catalog.list() }),
    recheck: async () => void (await Promise.all(clis.map(({ health }) => health.forceCheck()))),
    countRequests: oneAtATime(() => scrape.refresh(), rest),
    metrics: oneAtATime(() => scrape.text(), rest),
    worked: () => host.heap.touch(),
  });
}

function logStart({ config, host, names, warnings }: StartInput): void {
  const { log, product, termination } = host;
  for (const warning of warnings) log.warn('config_warning', { warning });
  const adapter = names.clis.map(({ name }) => name).join(', ');
  const started = { version: product.version, adapter, workers: config.workers };
  const { means } = termination.containments;
  log.info('service_start', { ...started, termination: means, no_cgroup: termination.fault ?? undefined });
}
