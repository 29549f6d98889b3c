import type { ModelsBody } from '../shared/api/models.js';
import type { SetupReport } from '../shared/api/setup.js';
import { delay } from '../shared/clock.js';
import { oneAtATime } from '../shared/shared-calls.js';
import { localUrl } from '../shared/url.js';
import { apiHandlers, type Services } from './api/handlers.js';
import { liveSections } from './api/live-status.js';
import { setupReportOf } from './api/setup-report.js';
import { Status } from './api/status.js';
import { StatusFeed } from './api/status-feed.js';
import { workerSettings } from './api/worker-settings.js';
import { modelCatalog } from './cli/models.js';
import { watchKeysFile } from './clients/keys-file.js';
import type { WatchedFile } from './clients/watched-file.js';
import { compose, type Parts, type Setup } from './compose.js';
import { KeyBrake } from './limits/key-brake.js';
import { RateLimit } from './limits/rate-limit.js';

const expiryCheckMs = 10_000;
/** /metrics is open to all, and a scrape takes milliseconds of every process. */
const betweenScrapesMs = 100;

/** The service as its main file drives it. */
export class Service {
  readonly #parts: Parts;
  readonly #keysFile: WatchedFile | null;

  constructor(setup: Setup) {
    this.#parts = compose(setup);
    const { config, host, clients, fleet } = this.#parts;
    const tellKeys = () => fleet.tell((peer) => peer.call('keys', { keys: clients.forWorkers }));
    this.#keysFile = watchKeysFile(config.keysFile, clients, tellKeys, host);
  }

  /** Takes over what the last service has left. Called once, before the start. */
  async restore(): Promise<void> {
    const { host, kept, store } = this.#parts;
    const conversations = await kept.restore();
    if (store.kind !== 'memory') host.log.info('store_opened', { store: store.kind, conversations });
  }

  start(workerProgram: string, warnings: readonly string[]): void {
    const { config, host, cli, fleet, supervisor, slots, readiness, caretaker, conversations } = this.#parts;
    const { log, product, clock, systemd, termination } = host;
    for (const warning of warnings) log.warn('config_warning', { warning });
    const { means } = termination.containments;
    const started = { version: product.version, adapter: cli.adapter.name, workers: config.workers };
    log.info('service_start', { ...started, termination: means, no_cgroup: termination.fault ?? undefined });
    fleet.start(workerProgram, this.#handlers(warnings));
    systemd.start({ phase: () => supervisor.phase, slots, fleet });
    readiness.start();
    this.#keysFile?.start();
    caretaker.start();
    clock.every(expiryCheckMs, () => conversations.expire());
  }

  /** Drains. At the second call, what is left is cut. */
  terminate(signal: string): Promise<void> {
    return this.#parts.supervisor.terminate(signal);
  }

  /** Whoever has started the service has gone: it drains, if it does not do so already. */
  async endWithStarter(): Promise<void> {
    if (this.#parts.supervisor.phase !== 'draining') await this.terminate('its starter has gone');
  }

  /** Replaces the workers. Jobs, queue and conversations stay as they are. */
  async reload(): Promise<void> {
    const { host, supervisor, fleet } = this.#parts;
    if (supervisor.phase !== 'ready') return;
    host.log.info('reload_start');
    await this.#keysFile?.reread();
    if (await host.systemd.reloading(fleet.replaceAll())) host.log.info('reload_complete');
  }

  #handlers(warnings: readonly string[]) {
    const { config, host, addresses, supervisor, clients, runner, conversations, metrics, cli, scrape } = this.#parts;
    const status = new Status(this.#parts);
    const models = modelCatalog(() => cli.program.listModels(), cli.models, host.clock);
    return apiHandlers({
      phase: () => supervisor.phase,
      workerSettings: () => workerSettings(config, clients.forWorkers, addresses.fds.length, host, supervisor.phase),
      runner,
      conversations,
      kept: this.#parts.kept,
      rateLimit: new RateLimit((client) => clients.rateOf(client), host.clock),
      keyBrake: new KeyBrake(host.clock, (client, seconds) => host.log.warn('wrong_keys', { client, seconds })),
      jobMetrics: metrics.jobs,
      clientMetrics: metrics.clients,
      usage: this.#parts.usage,
      tokens: this.#parts.tokens,
      schemas: this.#parts.schemas,
      status,
      live: liveOf(this.#parts, status),
      setup: async () => this.#setupReport(await models(), warnings),
      recheck: () => this.#recheck(),
      models,
      metrics: oneAtATime(
        () => scrape.text(),
        () => delay(host.clock, betweenScrapesMs),
      ),
      worked: () => host.heap.worked(),
    });
  }

  /** What the service knows already: nothing is started for it, except where GET /models would start it too. */
  #setupReport(models: ModelsBody, warnings: readonly string[]): SetupReport {
    const { config, host, addresses, clients, cli, readiness } = this.#parts;
    const url = localUrl(addresses.main.host, addresses.main.port);
    const { command } = cli.adapter;
    return setupReportOf({
      config,
      host,
      url,
      keys: clients.names,
      command,
      check: readiness.current,
      models,
      warnings,
    });
  }

  async #recheck(): Promise<void> {
    const { readiness, breaker, cli } = this.#parts;
    if (readiness.isCredentialRefused) void cli.pool.flush(); // what waits holds the refused credential
    breaker.tryAgain();
    await readiness.check('forced');
  }
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
