import type { Config } from '../shared/config/config.js';
import { describeError } from '../shared/logger.js';
import type { Phase } from '../shared/phase.js';
import { apiHandlers } from './api.js';
import { ConversationStore } from './conversations/conversation-store.js';
import { doorSettings } from './door-settings.js';
import { Fleet } from './fleet/fleet.js';
import type { FleetEvents } from './fleet/fleet-events.js';
import type { World } from './host/world.js';
import { type JobObserver, JobRunner } from './jobs/job-runner.js';
import { SlotQueue } from './jobs/slot-queue.js';
import { PrimaryMetrics } from './metrics/primary-metrics.js';
import { Scrape } from './metrics/scrape.js';
import { addServiceGauges } from './metrics/service-gauges.js';
import { ModelCatalog } from './model-catalog.js';
import { type AdapterChoice, createModelCli, type ModelCli } from './model-cli.js';
import { observeFleet } from './observe-fleet.js';
import { observeJobs } from './observe-jobs.js';
import { RateLimit } from './rate-limit.js';
import { Readiness } from './readiness/readiness.js';
import { Status } from './status.js';
import { Supervisor } from './supervisor.js';
import { TokenCounter } from './tokens/token-counter.js';

const expiryCheckMs = 10_000;
/** A model CLI takes up to 185 MB (measured on claude): below this, none is started in advance. */
const minFreeBytes = 512 * 1024 * 1024;
const maxWaitingBytes = 64 * 1024 * 1024;
/** What a worker needs beyond the two limits of a job to receive a request and to send the answer. */
const exchangeOverheadMs = 60_000;

/** Every part of the primary, tied together. Nothing runs before `start`. */
export class Service {
  readonly #config: Config;
  readonly #world: World;
  readonly #cli: ModelCli;
  readonly #port: number;
  readonly #slots: SlotQueue;
  readonly #metrics: PrimaryMetrics;
  readonly #conversations: ConversationStore;
  readonly #runner: JobRunner;
  readonly #readiness: Readiness;
  readonly #scrape: Scrape;
  readonly #status: Status;
  readonly #fleet: Fleet;
  readonly #supervisor: Supervisor;

  /** `port` is where workers are to listen: the configured one, or a free one that stands for port 0. */
  constructor(config: Config, world: World, choice: AdapterChoice, port: number) {
    const { clock, log } = world;
    this.#config = config;
    this.#world = world;
    this.#port = port;
    this.#slots = new SlotQueue({ maxActive: config.maxConcurrent, maxWaiting: config.maxQueue, maxWaitingBytes });
    this.#metrics = new PrimaryMetrics({
      jobsRefused: () => ({
        queue_full: this.#slots.refused,
        conversations_busy: this.#conversations.refused,
      }),
      conversationsCreated: () => this.#conversations.counts.created,
    });
    this.#cli = createModelCli(config, world, choice, this.#metrics.cli, () => this.#isCalm());
    this.#conversations = this.#createConversations();
    this.#runner = this.#createRunner();
    this.#readiness = this.#createReadiness();
    this.#scrape = new Scrape(this.#metrics.registry, clock, () => this.#metrics.scrapeFailed());
    this.#status = this.#createStatus();
    this.#fleet = this.#createFleet();
    this.#supervisor = new Supervisor(this.#charges(), config.drainMs, clock, log, world.exit);
    addServiceGauges(this.#metrics.registry, this.#gaugeSources());
  }

  start(workerProgram: string): void {
    const { log, product, clock } = this.#world;
    const { name } = this.#cli.adapter;
    for (const warning of this.#cli.warnings) log.warn('config_warning', { warning });
    log.info('service_start', { version: product.version, adapter: name, workers: this.#config.workers });
    this.#fleet.start(workerProgram);
    this.#world.systemd.start({ phase: () => this.#supervisor.phase, slots: this.#slots, fleet: this.#fleet });
    this.#readiness.start();
    this.#cli.shelf.start();
    clock.every(expiryCheckMs, () => this.#conversations.expire());
  }

  /** Drains; at the second call, cuts what is left. */
  terminate(signal: string): Promise<void> {
    return this.#supervisor.terminate(signal);
  }

  /** Replaces the workers; jobs, queue and conversations stay as they are. */
  async reload(): Promise<void> {
    if (this.#supervisor.phase !== 'ready') return;
    const { log, systemd } = this.#world;
    log.info('reload_start');
    if (await systemd.reloading(this.#fleet.replaceAll())) log.info('reload_complete');
  }

  #createConversations(): ConversationStore {
    const { conversationTtlMs: ttlMs, maxConversations, conversationBytes: maxBytes } = this.#config;
    const limits = { ttlMs, maxConversations, maxBytes };
    return new ConversationStore(limits, this.#world.clock, (cause, id) => {
      this.#metrics.conversations.removed(cause);
      this.#cli.shelf.forget(id);
    });
  }

  #createRunner(): JobRunner {
    const { clock, log } = this.#world;
    const { shelf, models } = this.#cli;
    const tokens = new TokenCounter(clock, (error) => log.error('internal_error', { error: describeError(error) }));
    const { queueTimeoutMs, executionMs } = this.#config;
    return new JobRunner(
      {
        slots: this.#slots,
        conversations: this.#conversations,
        takeCli: (launch, conversation, signal) => shelf.take(launch, conversation, signal),
        countTokens: (texts) => tokens.count(texts),
        observer: this.#createObserver(),
        clock,
      },
      models,
      { queueTimeoutMs, executionMs },
    );
  }

  /** Starting in advance is for when nobody waits and memory is plenty. */
  #isCalm(): boolean {
    return this.#supervisor.phase === 'ready' && this.#slots.waiting === 0 && this.#world.freeMemory() > minFreeBytes;
  }

  #createObserver(): JobObserver {
    const { jobs } = this.#metrics;
    return observeJobs({ jobs, readiness: () => this.#readiness, shelf: this.#cli.shelf, log: this.#world.log });
  }

  #createReadiness(): Readiness {
    const { program, adapter } = this.#cli;
    const { readinessIntervalMs: intervalMs, historyLimit } = this.#config;
    const { clock, random } = this.#world;
    const settings = { adapter: adapter.name, intervalMs, historyLimit };
    return new Readiness(
      () => program.check(),
      settings,
      clock,
      random,
      (entry) => {
        this.#metrics.readiness.checked(entry);
        this.#world.log.info('readiness_checked', {
          status: entry.status,
          trigger: entry.trigger,
          check_ms: entry.durationMs,
          error: entry.error,
        });
      },
    );
  }

  #createStatus(): Status {
    const { adapter, program } = this.#cli;
    return new Status(
      {
        phase: () => this.#supervisor.phase,
        slots: this.#slots,
        jobs: this.#metrics.jobs,
        runner: this.#runner,
        fleet: () => this.#fleet,
        shelf: this.#cli.shelf,
        readiness: this.#readiness,
        strictHealth: this.#config.strictHealth,
        product: this.#world.product,
        cli: () => ({ adapter: adapter.name, version: program.version }),
      },
      this.#world.clock,
    );
  }

  #createFleet(): Fleet {
    const { workers: size, queueTimeoutMs, executionMs } = this.#config;
    const maxExchangeMs = queueTimeoutMs + executionMs + exchangeOverheadMs;
    const settings = { size, maxExchangeMs, passedFds: this.#world.systemd.passedFds };
    return new Fleet(settings, this.#handlers(), this.#observeFleet(), this.#world.clock, this.#world.log);
  }

  #observeFleet(): FleetEvents {
    const supervisor = () => this.#supervisor;
    return observeFleet({ supervisor, scrape: this.#scrape, metrics: this.#metrics, world: this.#world });
  }

  #handlers() {
    const { rateWindowMs: windowMs, rateMaxRequests: maxRequests } = this.#config;
    const catalog = new ModelCatalog(() => this.#cli.program.listModels(), this.#cli.models, this.#world.clock);
    return apiHandlers({
      phase: () => this.#supervisor.phase,
      doorSettings: () =>
        doorSettings(this.#config, this.#port, this.#world.systemd.passedFds.length, this.#supervisor.phase),
      runner: this.#runner,
      conversations: this.#conversations,
      rateLimit: new RateLimit({ windowMs, maxRequests }),
      jobMetrics: this.#metrics.jobs,
      status: this.#status,
      recheck: () => this.#recheck(),
      models: () => catalog.list(),
      metrics: () => this.#scrape.text(),
    });
  }

  async #recheck(): Promise<void> {
    if (this.#readiness.isCredentialRefused) void this.#cli.shelf.flush(); // it holds the credential of before
    await this.#readiness.check('forced');
  }

  #charges() {
    return {
      announce: (phase: Phase) => {
        this.#fleet.tell(phase);
        this.#world.systemd.announce(phase);
      },
      idle: () => this.#slots.idle(),
      counts: () => ({ running: this.#slots.active, queued: this.#slots.waiting }),
      cutAll: (reason: Error) => this.#runner.cutAll(reason),
      stopWorkers: (limitMs: number) => this.#fleet.stop(limitMs),
      endProcesses: async () => {
        this.#readiness.stop();
        const { shelf, launcher } = this.#cli;
        await Promise.all([shelf.close(), launcher.close()]);
      },
    };
  }

  #gaugeSources() {
    return {
      config: this.#config,
      product: this.#world.product,
      adapter: this.#cli.adapter.name,
      slots: this.#slots,
      conversations: this.#conversations,
      fleet: this.#fleet,
      shelf: this.#cli.shelf,
      phase: () => this.#supervisor.phase,
      logWriteErrors: () => this.#world.logWriteErrors(),
    };
  }
}
