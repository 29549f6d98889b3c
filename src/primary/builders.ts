import { localUrl } from '../shared/config/addresses.js';
import type { ReadinessEntry } from '../shared/health.js';
import type { JobRequest } from '../shared/job.js';
import { serviceExits } from '../shared/phase.js';
import { paintFor } from '../shared/text/paint.js';
import { BackgroundJobs } from './background/background-jobs.js';
import type { BackgroundObserver } from './background/background-resources.js';
import { BackgroundRunner } from './background/background-runner.js';
import type { CliObserver } from './cli/contract/observer.js';
import { type CliContext, createModelClis, type ModelCli } from './cli/model-cli.js';
import type { AtLeastOne } from './cli/models.js';
import { HostLoad } from './cli/pool/host-load.js';
import { StandbyKeeper } from './cli/pool/standby-keeper.js';
import { ConversationStore } from './conversations/conversation-store.js';
import { KeptConversations } from './conversations/kept-conversations.js';
import { Claims } from './idempotency/claims.js';
import { isRefused } from './jobs/job.js';
import { JobRunner } from './jobs/job-runner.js';
import { Banner } from './lifecycle/banner.js';
import { observeJobs } from './observe/job-observer.js';
import { Scrape } from './observe/scrape.js';
import type { Parts, Setup } from './parts.js';
import { Workers, type WorkersObserver } from './workers/workers.js';

/** What a worker needs beyond the two limits of a job to receive a request and to send the answer. */
const exchangeOverheadMs = 60_000;

export function createConversations({
  config,
  host,
  hosts,
  store,
}: Setup): Pick<Parts, 'conversations' | 'kept' | 'shared'> {
  const { conversationTtlMs: ttlMs, maxConversations } = config;
  const { conversationBytes: maxBytes, maxConversationBytes: maxBytesEach } = config;
  const limits = { ttlMs, maxConversations, maxBytes, maxBytesEach };
  const conversations = new ConversationStore(limits, host.clock);
  const shared = hosts?.replicaOf(conversations) ?? null;
  return { conversations, kept: new KeptConversations(conversations, store.conversations, host.clock), shared };
}

export function createBanner({ config, host, named }: Setup): Banner {
  const { product, clock, logStyle } = host;
  const consolePath = config.console === 'on' ? '/console/' : null;
  const facts = { version: product.version, adapter: named[0].adapter.name, consolePath, needsKey: config.needsKey };
  return new Banner(facts, clock, paintFor(logStyle === 'coloured'), (lines) => host.show(lines));
}

interface WithBanner {
  readonly banner: Banner;
}

export function createClis(
  parts: Setup & Pick<Parts, 'clientsSeen' | 'metrics' | 'redactor'> & WithBanner & Pick<CliContext, 'onCircuit'>,
): AtLeastOne<ModelCli> {
  const { config, host, named, clientsSeen, metrics, redactor, banner, onCircuit } = parts;
  const observerOf = (cli: string): CliObserver => {
    const counted = metrics.cliOf(cli);
    let hasGreeted = false;
    return {
      ...counted,
      textIgnored: () => {
        if (!hasGreeted) host.log.info('cli_text_ignored', { cli }); // each of its processes does it
        hasGreeted = true;
      },
      requestRefused: (request) => {
        counted.requestRefused(request);
        host.log.error('cli_request_refused', { cli, request });
      },
    };
  };
  const onChecked = (entry: ReadinessEntry) => {
    metrics.readiness.checked(entry);
    if (entry.cli === named[0].name) banner.checked(entry);
    const { cli, status, trigger, durationMs, error } = entry;
    host.log.info('readiness_checked', {
      ...(named.length > 1 && { cli }),
      status,
      trigger,
      check_ms: durationMs,
      error,
    });
  };
  return createModelClis(config, host, named, { observerOf, onChecked, onCircuit, redactor, clients: clientsSeen });
}

type AfterRunner =
  | 'background'
  | 'backgroundRunner'
  | 'feeder'
  | 'claims'
  | 'supervisor'
  | 'standbyKeepers'
  | 'scrape'
  | 'workers';
type BeforeRunner = Exclude<keyof Parts, keyof Setup | 'runner' | AfterRunner>;

export function createRunner({ config, host, store, ...parts }: Setup & Pick<Parts, BeforeRunner>): JobRunner {
  const { clock, log } = host;
  const { room, conversations, metrics, usage, lastHour, tokens, schemas, clis, router } = parts;
  const observer = observeJobs({ jobs: metrics.jobs, clients: metrics.clients, usage, lastHour, log });
  const resources = {
    room,
    clis,
    router,
    clients: parts.clientsSeen,
    conversations,
    schemas,
    countTokens: (texts: readonly string[]) => tokens.count(texts),
    journal: store.conversations,
    isStoreUp: () => store.isUp,
    knownModels: parts.knownModels,
    observer,
    redactor: parts.redactor,
    clock,
  };
  return new JobRunner(resources, config);
}

export function createBackground(
  parts: Setup & Pick<Parts, 'room' | 'shared' | 'runner' | 'usage' | 'lastHour' | 'metrics'>,
): Pick<Parts, 'background' | 'backgroundRunner' | 'feeder'> {
  const { config, host, hosts, store, room, shared, runner } = parts;
  const { usage, lastHour, metrics } = parts;
  const { clock, log } = host;
  const observer: BackgroundObserver = {
    ended: ({ accepted, client, queueMs }, end) => {
      const { requestId, operation } = accepted.request;
      const ids = { job_id: accepted.id, request_id: requestId, client };
      const { outcome, executionMs } = end;
      const error = isRefused(end) ? end.failure.code : undefined;
      const figures = { queue_ms: queueMs, execution_ms: executionMs };
      log.info('background_job_ended', { ...ids, operation, outcome, error, ...figures });
    },
    refused: (client) => {
      lastHour.refused();
      usage.refused(client);
      metrics.clients.refused(client);
    },
  };
  const jobs = store.jobs;
  const enter = shared && ((id: string, client: string) => shared.enter(id, client));
  const resources = { runner, room, enter, store: jobs, observer, clock };
  const backgroundRunner = new BackgroundRunner(resources);
  const dismiss = (request: JobRequest, reason: Error) => void runner.dismiss(request, reason);
  const elsewhere = hosts?.remoteJobs(dismiss);
  const background = new BackgroundJobs(jobs, backgroundRunner, config, clock, elsewhere);
  return { background, backgroundRunner, feeder: hosts?.puller(background, backgroundRunner) ?? null };
}

export function createClaims({ host, store, runner }: Setup & Pick<Parts, 'runner'>): Claims {
  return new Claims(store.answers, host.clock, () => runner.busySeconds);
}

export function createScrape({ host, metrics, lastHour }: Setup & Pick<Parts, 'metrics' | 'lastHour'>): Scrape {
  const onFailure = () => metrics.scrapeFailed();
  return new Scrape(metrics.registry, host.clock, onFailure, (families) => lastHour.counted(families));
}

export function createStandbyKeepers(
  parts: Setup & Pick<Parts, 'clis' | 'runner' | 'supervisor'>,
): readonly StandbyKeeper[] {
  const { config, host, clis, runner, supervisor } = parts;
  const { clock, freeMemory } = host;
  return clis.map((cli) => {
    const { pool, history, findProgram, health } = cli;
    const load = new HostLoad(clock, freeMemory);
    const isReady = () => supervisor.phase === 'ready' && health.circuits.isClosed;
    const waitingJobs = () => runner.next(cli);
    return new StandbyKeeper(config.standby, { pool, history, findProgram, load, clock, waitingJobs, isReady });
  });
}

export function createFleet(parts: Setup & Pick<Parts, 'metrics' | 'supervisor' | 'scrape'> & WithBanner): Workers {
  const { config, host, addresses, agent, metrics, supervisor, scrape, banner } = parts;
  const { clock, log } = host;
  const { workers: size, queueTimeoutMs, executionMs } = config;
  const maxExchangeMs = queueTimeoutMs + executionMs + exchangeOverheadMs;
  const observer: WorkersObserver = {
    listening: (worker) => {
      scrape.joined(worker);
      if (!supervisor.becomeReady()) return;
      log.info('service_ready', { ...addresses.main, agent_port: agent?.port });
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
  return new Workers({ size, maxExchangeMs, fds: addresses.fds }, observer, clock, log);
}
