import { oneAtATime } from '../shared/async.js';
import { delay } from '../shared/clock.js';
import { UserConnections } from './access/user-connections.js';
import { endJobsWithoutAccess } from './api/ended-access.js';
import { apiHandlers } from './api/handlers.js';
import { joinRemoval, storeUpkeep } from './api/purge-client.js';
import { workerSettings } from './api/worker-settings.js';
import { compose, type Parts, type StartInput } from './compose.js';
import { FirstStart } from './lifecycle/first-start.js';
import { toolsIgnored } from './observe/observers.js';

const expiryCheckMs = 10_000;
const backgroundCheckMs = 1000;
/** How often the keys of features are read again, which other hosts may have changed. */
const keysCheckMs = 1000;
/** Pause between scrapes: /metrics needs no API key by default, and a scrape costs milliseconds in every process. */
const betweenScrapesMs = 100;

/** Service as `main.ts` controls it. */
export class Service {
  readonly #parts: Parts;
  readonly #firstStart: FirstStart;

  constructor(input: StartInput) {
    this.#parts = compose(input);
    this.#firstStart = new FirstStart(input.config.firstStartFile, input.host.clock.now());
  }

  /**
   * Takes over the state of the previous service, at once or when the store can be opened. Must be called once, before
   * `start`.
   */
  async restore(): Promise<void> {
    const { conversations, sizes, store, features } = this.#parts;
    await Promise.all([sizes.load(), this.#firstStart.load(), features.refreshKeys()]);
    conversations.isRestored = false;
    await store.restore(() => this.#takeOver());
  }

  /** Restores the state. May be called again after a failure. */
  async #takeOver(): Promise<void> {
    const { host, journaledConversations, localJobs, store, features } = this.#parts;
    const conversations = await journaledConversations.restoreConversations();
    this.#parts.conversations.isRestored = true;
    await features.refreshKeys();
    await features.restored();
    const jobs = localJobs.background.length;
    if (store.kind !== 'memory') host.log.info('store_opened', { store: store.kind, conversations, jobs });
  }

  /** Whether it takes jobs, or has taken some. */
  get hasStarted(): boolean {
    return this.#parts.supervisor.phase !== 'starting';
  }

  start(workerProgram: string): void {
    const { host, hosts, front, logins, workers, supervisor, room, keysFile } = this.#parts;
    logStart(this.#parts);
    const { clients, features } = this.#parts;
    for (const warning of [...logins.warnings(clients.keyClients), ...features.findKeyWarnings()])
      host.log.warn('config_warning', { warning });
    workers.start(workerProgram, handlersOf({ ...this.#parts, firstStart: this.#firstStart }));
    host.systemd.startNotifications({ phase: () => supervisor.phase, slots: room, workers });
    front?.serve({ ...this.#parts, slots: room });
    hosts?.startSignsOfLife();
    hosts?.removals.listen((client) => joinRemoval(this.#parts, client));
    logins.startChecks();
    keysFile?.startWatching();
    host.heap.touch();
    features.start();
    this.#startTimers();
  }

  #startTimers(): void {
    const { host, conversations, room, features } = this.#parts;
    const { clock } = host;
    clock.every(expiryCheckMs, () => {
      conversations.expireConversations();
      features.expire();
    });
    clock.every(keysCheckMs, () => void features.refreshKeys());
    clock.every(backgroundCheckMs, () => {
      endJobsWithoutAccess(this.#parts, clock);
      room.check();
    });
  }

  /**
   * Drains after the load balancer has noticed that this host leaves. A second call skips this wait; a call during the
   * drain cuts the remaining jobs.
   */
  async terminate(signal: string): Promise<void> {
    const { front, host, supervisor } = this.#parts;
    // requests are still served until the load balancer has noticed
    const mayBeSent = front !== null && supervisor.phase === 'ready';
    if (mayBeSent && front.isAsked) host.log.info('leaving_front', { signal });
    if (!mayBeSent || (await front.leave())) await supervisor.terminate(signal);
  }

  /**
   * Drains for a successor. If this process has opened the addresses itself, new connections would be refused, so it
   * terminates normally.
   */
  async handOver(signal: string): Promise<void> {
    const { front, host, supervisor } = this.#parts;
    if (front !== null || host.systemd.passedFds.length === 0) await this.terminate(signal);
    else await supervisor.handOver(signal);
  }

  /** Drains because the process that started the service has exited; has no effect during a drain. */
  async endWithStarter(): Promise<void> {
    if (this.#parts.supervisor.phase !== 'draining') await this.terminate('its starter has exited');
  }

  /** Replaces the workers, unless a feature refuses this. Jobs, the queue and conversations are unaffected. */
  async reload(): Promise<void> {
    const { host, supervisor, workers, keysFile, logins, features } = this.#parts;
    if (supervisor.phase !== 'ready') return;
    const act = { act: 'service_reloaded', by: 'signal SIGHUP', target: null, request_id: null } as const;
    const isAllowed = await features.beforeAct(act).then(
      () => true,
      () => false, // logged
    );
    if (!isAllowed) return;
    host.log.info('reload_start');
    await keysFile?.reread();
    await logins.reread();
    if (await host.systemd.reloading(workers.replaceAll())) host.log.info('reload_complete');
  }
}

/** Returns the handlers of the calls of the workers. */
function handlersOf(parts: Parts & { readonly firstStart: FirstStart }) {
  const { config, host, addresses, supervisor, clients, metrics, scrape, logins } = parts;
  const { firstStart } = parts;
  const pause = () => delay(host.clock, betweenScrapesMs);
  return apiHandlers({
    ...parts,
    workerSettings: () => {
      const state = {
        phase: supervisor.phase,
        firstStartMs: firstStart.ms,
        modelAbilities: parts.features.modelAbilities,
      };
      return workerSettings(config, clients.workerKeys, addresses, host, state);
    },
    connections: new UserConnections(),
    jobMetrics: metrics.jobs,
    toolsIgnored: toolsIgnored(host, metrics.jobs),
    upkeep: storeUpkeep(parts),
    recheck: () => logins.checkAll(),
    metrics: oneAtATime(() => scrape.writeText(), pause),
    noteActivity: () => host.heap.touch(),
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
