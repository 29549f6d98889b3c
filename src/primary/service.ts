import type { ModelList } from '../shared/api/models.js';
import type { SetupReport } from '../shared/api/setup.js';
import { oneAtATime } from '../shared/async/shared-calls.js';
import { delay } from '../shared/clock.js';
import { localUrl } from '../shared/config/addresses.js';
import { Hourly } from './access/hourly.js';
import { KeyAttempts } from './access/key-attempts.js';
import { type WatchedFile, watchKeysFile } from './access/keys-file.js';
import { RateLimit } from './access/rate-limit.js';
import { SharedRateLimit } from './access/shared-rate-limit.js';
import { UserConnections } from './access/user-connections.js';
import { apiHandlers, type Services, workerSettings } from './api/handlers.js';
import { purgeClient } from './api/purge-client.js';
import { setupReportOf } from './api/setup-report.js';
import { compose } from './compose.js';
import { liveSections, Status } from './observe/status.js';
import { StatusFeed } from './observe/status-feed.js';
import type { Parts, Setup } from './parts.js';
import { expiryAt } from './store/contract/store.js';

const expiryCheckMs = 10_000;
const backgroundLookMs = 1000;
/** /metrics is open to all, and a scrape takes milliseconds of every process. */
const betweenScrapesMs = 100;

/** The service as its main file drives it. */
export class Service {
  readonly #parts: Parts;
  readonly #keysFile: WatchedFile | null;

  constructor(setup: Setup) {
    this.#parts = compose(setup);
    const { config, host, clients, workers } = this.#parts;
    const tellKeys = () => workers.tell((peer) => peer.call('keys', { keys: clients.forWorkers }));
    this.#keysFile = watchKeysFile(config.keysFile, clients, tellKeys, host);
  }

  /** Takes over what the last service has left. Called once, before the start. */
  async restore(): Promise<void> {
    const { host, kept, usageJournal, background, store } = this.#parts;
    const conversations = await kept.restore();
    if (store.kind !== 'memory') await usageJournal.restore();
    const jobs = await background.restore();
    if (store.kind !== 'memory') host.log.info('store_opened', { store: store.kind, conversations, jobs });
  }

  start(workerProgram: string, warnings: readonly string[]): void {
    const { config, host, agent, clis, workers, supervisor, room, standbyKeepers } = this.#parts;
    const { log, product, systemd, termination } = host;
    for (const warning of warnings) log.warn('config_warning', { warning });
    const { means } = termination.containments;
    const adapter = clis.map(({ name }) => name).join(', ');
    const started = { version: product.version, adapter, workers: config.workers };
    log.info('service_start', { ...started, termination: means, no_cgroup: termination.fault ?? undefined });
    workers.start(workerProgram, this.#handlers(warnings));
    systemd.start({ phase: () => supervisor.phase, slots: room, workers });
    agent?.serve({ ...this.#parts, slots: room });
    this.#parts.hosts?.start();
    for (const { health } of clis) health.checks.start();
    this.#keysFile?.start();
    for (const keeper of standbyKeepers) keeper.start();
    host.heap.touch();
    this.#lookAfterJobs();
  }

  /** What is done from time to time. */
  #lookAfterJobs(): void {
    const { host, conversations, background, room, feeder, claims } = this.#parts;
    const { clock } = host;
    clock.every(expiryCheckMs, () => {
      conversations.expire();
      background.expire();
      claims.expire();
    });
    clock.every(backgroundLookMs, () => {
      room.check();
      feeder?.check();
    });
  }

  /** Drains, once the front has heard of it. A further call ends that wait, and in the drain it cuts what is left. */
  async terminate(signal: string): Promise<void> {
    const { agent, host, supervisor } = this.#parts;
    const mayBeSent = agent !== null && supervisor.phase === 'ready'; // what is sent until the front has heard is served
    if (mayBeSent && agent.isAsked) host.log.info('leaving_front', { signal });
    if (!mayBeSent || (await agent.leave())) await supervisor.terminate(signal);
  }

  /** Whoever has started the service has gone: it drains, if it does not do so already. */
  async endWithStarter(): Promise<void> {
    if (this.#parts.supervisor.phase !== 'draining') await this.terminate('its starter has gone');
  }

  /** Replaces the workers. Jobs, queue and conversations stay as they are. */
  async reload(): Promise<void> {
    const { host, supervisor, workers } = this.#parts;
    if (supervisor.phase !== 'ready') return;
    host.log.info('reload_start');
    await this.#keysFile?.reread();
    if (await host.systemd.reloading(workers.replaceAll())) host.log.info('reload_complete');
  }

  #handlers(warnings: readonly string[]) {
    const { config, host, addresses, supervisor, clients, runner, metrics, scrape, catalog } = this.#parts;
    const { conversations, shared, usage, usageJournal } = this.#parts;
    const status = new Status(this.#parts);
    return apiHandlers({
      phase: () => supervisor.phase,
      drainSecondsLeft: () => supervisor.drainSecondsLeft,
      workerSettings: () => workerSettings(config, clients.forWorkers, addresses.fds.length, host, supervisor.phase),
      runner,
      background: this.#parts.background,
      conversations: shared ?? conversations,
      kept: shared ?? this.#parts.kept,
      enter: shared && ((id, client) => shared.enter(id, client)),
      claims: this.#parts.claims,
      rateLimit: createRateLimit(this.#parts),
      keyAttempts: new KeyAttempts(host.clock, (client, seconds) => host.log.warn('wrong_keys', { client, seconds })),
      connections: new UserConnections(),
      jobMetrics: metrics.jobs,
      toolsIgnored: toolsIgnored(this.#parts),
      clientMetrics: metrics.clients,
      lastHour: this.#parts.lastHour,
      usage: {
        refused: (client) => usage.refused(client),
        report: (client, period) => usageJournal.report(client, period),
      },
      upkeep: upkeepOf(this.#parts),
      tokens: this.#parts.tokens,
      schemas: this.#parts.schemas,
      knownModels: this.#parts.knownModels,
      status,
      live: liveOf(this.#parts, status),
      setup: async () => this.#setupReport(await catalog.list(), warnings),
      recheck: () => this.#recheck(),
      catalog,
      countRequests: oneAtATime(
        () => scrape.refresh(),
        () => delay(host.clock, betweenScrapesMs),
      ),
      metrics: oneAtATime(
        () => scrape.text(),
        () => delay(host.clock, betweenScrapesMs),
      ),
      worked: () => host.heap.touch(),
    });
  }

  /** What the service knows already: nothing is started for it, except where GET /models would start it too. */
  #setupReport(models: ModelList, warnings: readonly string[]): SetupReport {
    const { config, host, addresses, clients, clis } = this.#parts;
    const url = localUrl(addresses.main.host, addresses.main.port);
    return setupReportOf({
      config,
      host,
      url,
      keys: clients.names,
      checked: clis.map(({ adapter, health }) => ({
        command: adapter.command, // of its arguments, some may be secret
        check: health.checks.current,
      })),
      models,
      warnings,
    });
  }

  async #recheck(): Promise<void> {
    await Promise.all(this.#parts.clis.map(({ health }) => health.forceCheck()));
  }
}

function createRateLimit({ store: { windows }, clients, host: { clock } }: Parts): RateLimit | SharedRateLimit {
  const rateOf = (client: string) => clients.rateOf(client);
  return windows === null ? new RateLimit(rateOf, clock) : new SharedRateLimit(rateOf, windows);
}

/** Counts each such request, and tells the operator of each client once an hour. */
function toolsIgnored({ host: { clock, log }, metrics }: Parts): Services['toolsIgnored'] {
  const hourly = new Hourly(clock);
  return ({ client, route }) => {
    metrics.jobs.toolsIgnored(route);
    if (hourly.isDue(client)) log.warn('tools_ignored', { client, path: route });
    return {};
  };
}

/** Whoever may see names, and whoever may not, are told by a feed each. */
function liveOf(parts: Parts, status: Status): Services['live'] {
  const { version } = parts.host.product;
  const create = (withNames: boolean) => {
    const sections = liveSections({ ...parts, status, version }, withNames);
    return { sections, feed: new StatusFeed(sections, parts.host.clock) };
  };
  return { named: create(true), nameless: create(false) };
}

/** What an operator asks of the store. */
function upkeepOf(parts: Parts): Services['upkeep'] {
  const { config, host, store } = parts;
  return {
    backupStore: ({ name }) => store.upkeep.backup(name),
    verifyStore: () => store.upkeep.verify(expiryAt(host.clock.now(), config)),
    purgeClient: async ({ client }) => {
      const report = await purgeClient(parts, client);
      host.log.warn('client_purged', { client });
      return report;
    },
  };
}
