import type { Config } from '../shared/config/config.js';
import { serviceExits } from '../shared/exit-codes.js';
import { describeError } from '../shared/logger.js';
import { paintFor } from '../shared/paint.js';
import { localUrl } from '../shared/url.js';
import type { Adapter } from './cli/adapter.js';
import { createModelCli, type ModelCli } from './cli/model-cli.js';
import { Caretaker } from './cli/pool/caretaker.js';
import { HostLoad } from './cli/pool/host-load.js';
import type { ConversationState } from './cli/process/cli-process.js';
import { Clients } from './clients/clients.js';
import { ConversationStore } from './conversations/conversation-store.js';
import { KeptConversations } from './conversations/kept-conversations.js';
import type { Addresses } from './fleet/addresses.js';
import { Fleet, type FleetObserver } from './fleet/fleet.js';
import { JobRunner } from './jobs/job-runner.js';
import { SlotQueue } from './jobs/slot-queue.js';
import { Banner } from './lifecycle/banner.js';
import type { Host } from './lifecycle/host.js';
import { type ShutdownSteps, Supervisor } from './lifecycle/supervisor.js';
import { Breaker } from './limits/breaker.js';
import { clientBounds } from './limits/client-bounds.js';
import { LastHour } from './metrics/last-hour.js';
import { PrimaryMetrics } from './metrics/primary-metrics.js';
import { Scrape } from './metrics/scrape.js';
import { addServiceGauges } from './metrics/service-gauges.js';
import { breakerListener } from './readiness/breaker-listener.js';
import { observeJobs } from './readiness/job-observer.js';
import { Readiness } from './readiness/readiness.js';
import { storeListener } from './readiness/store-listener.js';
import type { Store } from './store/store.js';
import { SchemaChecker } from './structured/schema-checker.js';
import { TokenCounter } from './tokens/token-counter.js';
import { UsageLedger } from './usage/usage-ledger.js';

const maxWaitingBytes = 64 * 1024 * 1024;
/** What a worker needs beyond the two limits of a job to receive a request and to send the answer. */
const exchangeOverheadMs = 60_000;

/** What the service is made from. */
export interface Setup {
  readonly config: Config;
  readonly host: Host;
  readonly adapter: Adapter;
  readonly addresses: Addresses;
  readonly store: Store;
}

/** The parts of the primary, in the order in which they are built: each knows only those before it. */
export interface Parts extends Setup {
  readonly clients: Clients;
  readonly slots: SlotQueue;
  readonly breaker: Breaker;
  readonly conversations: ConversationStore;
  readonly kept: KeptConversations;
  readonly metrics: PrimaryMetrics;
  readonly usage: UsageLedger;
  readonly lastHour: LastHour;
  readonly tokens: TokenCounter;
  readonly schemas: SchemaChecker;
  readonly cli: ModelCli;
  readonly readiness: Readiness;
  readonly runner: JobRunner;
  readonly supervisor: Supervisor;
  readonly caretaker: Caretaker;
  readonly scrape: Scrape;
  readonly fleet: Fleet;
}

/** Builds all parts and ties them together. Nothing runs yet. */
export function compose(setup: Setup): Parts {
  const { config, host, adapter } = setup;
  const { clock, log } = host;
  const { maxConcurrent: maxActive, maxQueue: maxWaiting } = config;
  const clients = new Clients(config);
  const boundsOf = clientBounds(config, (client) => clients.optionsOf(client));
  const slots = new SlotQueue({ maxActive, maxWaiting, maxWaitingBytes }, clock, boundsOf);
  const breaker = new Breaker(clock);
  const memory = createConversations(setup);
  const keyNames = config.apiKeys.map(({ name }) => name);
  const metrics = new PrimaryMetrics(slots, memory.conversations, keyNames);
  const figures = { metrics, usage: new UsageLedger(clock), lastHour: new LastHour(clock) };
  const onThreadError = (error: unknown) => log.error('internal_error', { error: describeError(error) });
  const threads = { tokens: new TokenCounter(clock, onThreadError), schemas: new SchemaChecker(clock, onThreadError) };
  const cli = createModelCli(config, host, adapter, { ...metrics.cli, quotaReported: breaker.reported });
  const banner = createBanner(setup);
  const readiness = createReadiness({ ...setup, breaker, metrics, cli, banner });
  const state = { ...setup, clients, slots, breaker, ...memory, ...figures, ...threads, cli, readiness };
  const runner = createRunner(state);
  const supervisor = new Supervisor(config.drainMs, clock, log, host.exit);
  const caretaker = createCaretaker({ ...setup, breaker, cli, runner, supervisor });
  const scrape = createScrape(state);
  const fleet = createFleet({ ...setup, metrics, supervisor, scrape, banner });
  const parts = { ...state, runner, supervisor, caretaker, scrape, fleet };
  linkBack(parts);
  return parts;
}

/** What an earlier part tells a later one. */
function linkBack(parts: Parts): void {
  const { host, slots, conversations, store, metrics, cli, supervisor, caretaker, fleet } = parts;
  slots.onChange(() => caretaker.changed());
  conversations.onRemoved((cause, id) => {
    metrics.conversations.removed(cause);
    cli.pool.forget(id);
    if (cause !== 'deleted') store.conversations.forget(id); // else it is no longer there
  });
  store.observe(storeListener(host.log, metrics));
  supervisor.attach(shutdownSteps(parts), (phase) => {
    fleet.tell((peer) => peer.call('phase', { phase }));
    host.systemd.announce(phase);
    caretaker.changed();
  });
  parts.breaker.listen(breakerListener(parts));
  addServiceGauges(metrics.registry, parts);
}

function createConversations({ config, host, store }: Setup): Pick<Parts, 'conversations' | 'kept'> {
  const { conversationTtlMs: ttlMs, maxConversations, clientMaxConversations } = config;
  const { conversationBytes: maxBytes, maxConversationBytes: maxBytesEach } = config;
  const limits = { ttlMs, maxConversations, clientMaxConversations, maxBytes, maxBytesEach };
  const conversations = new ConversationStore(limits, host.clock);
  return { conversations, kept: new KeptConversations(conversations, store.conversations, host.clock) };
}

function createBanner({ config, host, adapter }: Setup): Banner {
  const { product, clock, logStyle } = host;
  const consolePath = config.console === 'on' ? '/console/' : null;
  const facts = { version: product.version, adapter: adapter.name, consolePath, needsKey: config.needsKey };
  return new Banner(facts, clock, paintFor(logStyle === 'coloured'), (lines) => host.show(lines));
}

interface WithBanner {
  readonly banner: Banner;
}

function createReadiness(parts: Setup & Pick<Parts, 'breaker' | 'cli' | 'metrics'> & WithBanner): Readiness {
  const { config, host, breaker, cli, metrics, banner } = parts;
  const { clock, random, log } = host;
  const { readinessIntervalMs: intervalMs, historyLimit } = config;
  const settings = { adapter: cli.adapter.name, intervalMs, historyLimit };
  const check = async () => breaker.checked(await cli.check());
  return new Readiness(check, settings, clock, random, (entry) => {
    metrics.readiness.checked(entry);
    banner.checked(entry);
    const { status, trigger, durationMs, error } = entry;
    log.info('readiness_checked', { status, trigger, check_ms: durationMs, error });
  });
}

type BeforeRunner = Exclude<keyof Parts, keyof Setup | 'runner' | 'supervisor' | 'caretaker' | 'scrape' | 'fleet'>;

function createRunner({ config, host, store, ...parts }: Setup & Pick<Parts, BeforeRunner>): JobRunner {
  const { clock, log } = host;
  const { clients, slots, breaker, conversations, metrics, usage, lastHour, tokens, schemas, cli, readiness } = parts;
  const counts = { jobs: metrics.jobs, clients: metrics.clients, usage, lastHour };
  const observer = observeJobs({ ...counts, readiness, breaker, pool: cli.pool, log });
  const modelsOf = (client: string) => clients.optionsOf(client).models;
  const ofCli = {
    acquireCli: cli.acquire,
    isKept: (state: ConversationState) => cli.pool.keeps(state),
    extras: () => cli.program.extras,
  };
  const countTokens = (texts: readonly string[]) => tokens.count(texts);
  const resources = {
    slots,
    breaker,
    conversations,
    ...ofCli,
    schemas,
    countTokens,
    journal: store.conversations,
    modelsOf,
    observer,
    clock,
  };
  return new JobRunner(resources, cli.models, config);
}

function createScrape({ host, metrics, lastHour }: Setup & Pick<Parts, 'metrics' | 'lastHour'>): Scrape {
  const onFailure = () => metrics.scrapeFailed();
  return new Scrape(metrics.registry, host.clock, onFailure, (families) => lastHour.counted(families));
}

function createCaretaker(parts: Setup & Pick<Parts, 'breaker' | 'cli' | 'runner' | 'supervisor'>): Caretaker {
  const { config, host, breaker, cli, runner, supervisor } = parts;
  const { clock, freeMemory } = host;
  const { pool, history, findProgram } = cli;
  const load = new HostLoad(clock, freeMemory);
  const isReady = () => supervisor.phase === 'ready' && breaker.isClosed;
  const waitingJobs = () => runner.next;
  return new Caretaker(config.standby, { pool, history, findProgram, load, clock, waitingJobs, isReady });
}

function createFleet(parts: Setup & Pick<Parts, 'metrics' | 'supervisor' | 'scrape'> & WithBanner): Fleet {
  const { config, host, addresses, metrics, supervisor, scrape, banner } = parts;
  const { clock, log } = host;
  const { workers: size, queueTimeoutMs, executionMs } = config;
  const maxExchangeMs = queueTimeoutMs + executionMs + exchangeOverheadMs;
  const observer: FleetObserver = {
    listening: (worker) => {
      scrape.joined(worker);
      if (!supervisor.becomeReady()) return;
      log.info('service_ready', { ...addresses.main });
      banner.serving(localUrl(addresses.main.host, addresses.main.port));
    },
    unavailable: (reason) => {
      log.error('workers_unavailable', { reason });
      void supervisor.fail(serviceExits.unavailable);
    },
    counted: (worker, families) => scrape.counted(worker, families),
    left: (worker) => scrape.left(worker),
    restarted: (cause) => metrics.workerRestarted(cause),
  };
  return new Fleet({ size, maxExchangeMs, fds: addresses.fds }, observer, clock, log);
}

function shutdownSteps({
  addresses,
  store,
  slots,
  runner,
  fleet,
  readiness,
  breaker,
  caretaker,
  cli,
}: Parts): ShutdownSteps {
  return {
    idle: () => slots.idle(),
    counts: () => ({ running: slots.active, queued: slots.waiting }),
    cutAll: (reason) => runner.cutAll(reason),
    stopWorkers: async (limitMs) => {
      addresses.close(); // else clients would wait for a worker that never comes
      const isAllSent = await fleet.stop(limitMs);
      await store.close();
      return isAllSent;
    },
    endProcesses: async () => {
      readiness.stop();
      breaker.stop();
      caretaker.stop();
      await cli.pool.close();
    },
  };
}
