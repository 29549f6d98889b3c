import type { Clock } from '../shared/clock.js';
import { serviceExits } from '../shared/exit-codes.js';
import type { JobRequest } from '../shared/job.js';
import { paintFor } from '../shared/paint.js';
import type { ReadinessEntry } from '../shared/readiness.js';
import { localUrl } from '../shared/url.js';
import { BackgroundJobs } from './background/background-jobs.js';
import type { BackgroundObserver } from './background/background-resources.js';
import { BackgroundRunner } from './background/background-runner.js';
import { JobFeeder } from './background/job-feeder.js';
import type { AcceptedJob } from './background/job-store.js';
import { JobsElsewhere } from './background/jobs-elsewhere.js';
import type { SharedJobs } from './background/shared-jobs.js';
import { WaitingJobs } from './background/waiting-jobs.js';
import type { CliObserver } from './cli/contract/observer.js';
import type { ModelCli } from './cli/model-cli.js';
import { ModelClis } from './cli/model-clis.js';
import { Caretaker } from './cli/pool/caretaker.js';
import { HostLoad } from './cli/pool/host-load.js';
import type { ConversationState } from './cli/process/cli-state.js';
import { ConversationStore } from './conversations/conversation-store.js';
import { KeptConversations } from './conversations/kept-conversations.js';
import { SharedConversations } from './conversations/shared-conversations.js';
import { Fleet, type FleetObserver } from './fleet/fleet.js';
import { Claims } from './idempotency/claims.js';
import { isRefused } from './jobs/job.js';
import { JobRunner } from './jobs/job-runner.js';
import { TurnOrder } from './jobs/turn-order.js';
import { Banner } from './lifecycle/banner.js';
import { Scrape } from './metrics/scrape.js';
import type { Parts, Setup } from './parts.js';
import { observeJobs } from './readiness/job-observer.js';
import { Readiness } from './readiness/readiness.js';
import { ReadinessBoard } from './readiness/readiness-board.js';

/** What a worker needs beyond the two limits of a job to receive a request and to send the answer. */
const exchangeOverheadMs = 60_000;

export function createConversations({ config, host, store }: Setup): Pick<Parts, 'conversations' | 'kept' | 'shared'> {
  const { conversationTtlMs: ttlMs, maxConversations, clientMaxConversations } = config;
  const { conversationBytes: maxBytes, maxConversationBytes: maxBytesEach } = config;
  const limits = { ttlMs, maxConversations, clientMaxConversations, maxBytes, maxBytesEach };
  const conversations = new ConversationStore(limits, host.clock);
  const shared = store.shared && new SharedConversations(conversations, store.shared, host.clock);
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

export function createClis(parts: Setup & Pick<Parts, 'router' | 'breakers' | 'metrics' | 'redactor'>): ModelClis {
  const { config, host, named, router, breakers, metrics, redactor } = parts;
  const observerOf = (cli: string): CliObserver => {
    const counted = metrics.cliOf(cli);
    const breaker = breakers.all[named.findIndex(({ name }) => name === cli)];
    let hasGreeted = false;
    return {
      ...counted,
      textIgnored: () => {
        if (!hasGreeted) host.log.info('cli_text_ignored', { cli }); // each of its processes does it
        hasGreeted = true;
      },
      quotaReported: (windows) => breaker?.reported(windows),
      requestRefused: (request) => {
        counted.requestRefused(request);
        host.log.error('cli_request_refused', { cli, request });
      },
    };
  };
  return new ModelClis(config, host, named, router, observerOf, redactor);
}

export function createReadiness(
  parts: Setup & Pick<Parts, 'breakers' | 'clis' | 'metrics'> & WithBanner,
): ReadinessBoard {
  const { config, host, breakers, clis, metrics, banner } = parts;
  const { clock, random, log } = host;
  const { readinessIntervalMs: intervalMs, historyLimit } = config;
  const create = (cli: ModelCli, index: number) => {
    const settings = { cli: cli.name, adapter: cli.adapter.name, intervalMs, historyLimit };
    const check = async () => (breakers.all[index] ?? breakers.all[0]).checked(await cli.check());
    const onChecked = (entry: ReadinessEntry) => {
      metrics.readiness.checked(entry);
      if (index === 0) banner.checked(entry);
      const { status, trigger, durationMs, error } = entry;
      const which = clis.all.length > 1 && { cli: cli.name };
      log.info('readiness_checked', { ...which, status, trigger, check_ms: durationMs, error });
    };
    return new Readiness(check, settings, clock, random, onChecked, breakers.clients);
  };
  const [first, ...others] = clis.all;
  return new ReadinessBoard([create(first, 0), ...others.map((cli, at) => create(cli, at + 1))]);
}

type AfterRunner =
  | 'background'
  | 'backgroundRunner'
  | 'feeder'
  | 'claims'
  | 'supervisor'
  | 'caretakers'
  | 'scrape'
  | 'fleet';
type BeforeRunner = Exclude<keyof Parts, keyof Setup | 'runner' | AfterRunner>;

export function createRunner({ config, host, store, ...parts }: Setup & Pick<Parts, BeforeRunner>): JobRunner {
  const { clock, log } = host;
  const { slots, breakers, conversations, metrics, usage, lastHour, tokens, schemas, clis, readiness } = parts;
  const counts = { jobs: metrics.jobs, clients: metrics.clients, usage, lastHour };
  const cliOf = (request: JobRequest) => {
    const { index } = breakers.routeOf(request);
    const { pool } = clis.all[index] ?? clis.first;
    return { pool, breaker: breakers.of(request), readiness: readiness.all[index] ?? readiness.all[0] };
  };
  const observer = observeJobs({ ...counts, cliOf, log });
  const modelsOf = (client: string) => parts.router.modelsOf(client);
  const ofClis = {
    acquireCli: (...of: Parameters<ModelClis['acquire']>) => clis.acquire(...of),
    isKept: (state: ConversationState) => clis.keeps(state),
    extras: (model: string | null) => clis.extras(model),
    cliGates: parts.cliGates,
  };
  const countTokens = (texts: readonly string[]) => tokens.count(texts);
  const resources = {
    slots,
    breaker: breakers,
    conversations,
    ...ofClis,
    schemas,
    countTokens,
    journal: store.conversations,
    order: new TurnOrder(parts.shared),
    isStoreUp: () => store.isUp,
    modelsOf,
    knownModels: parts.knownModels,
    observer,
    redactor: parts.redactor,
    clock,
  };
  return new JobRunner(resources, clis.models, config);
}

type HoldingParts = 'breakers' | 'cliGates';

export function createBackground(
  parts: Setup &
    Pick<Parts, HoldingParts | 'slots' | 'conversations' | 'shared' | 'runner' | 'usage' | 'lastHour' | 'metrics'>,
): Pick<Parts, 'background' | 'backgroundRunner' | 'feeder'> {
  const { config, host, store, slots, breakers, cliGates, conversations, shared, runner } = parts;
  const { usage, lastHour, metrics } = parts;
  const { clock, log } = host;
  const waiting = new WaitingJobs();
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
  const isHeld = (request: JobRequest, linesUp: boolean) =>
    breakers.refusal(request) !== null || (!linesUp && !cliGates.hasRoomFor(request));
  const resources = { runner, slots, conversations, enter, isHeld, store: jobs, waiting, observer, clock };
  const backgroundRunner = new BackgroundRunner(resources);
  const dismiss = (request: JobRequest, reason: Error) => void runner.dismiss(request, reason);
  const elsewhere = store.sharedJobs && new JobsElsewhere(store.sharedJobs, dismiss, clock);
  const background = new BackgroundJobs(jobs, backgroundRunner, waiting, config, clock, elsewhere);
  return { background, backgroundRunner, feeder: createFeeder(store.sharedJobs, background, backgroundRunner, clock) };
}

function createFeeder(
  jobs: SharedJobs | null,
  background: BackgroundJobs,
  runner: BackgroundRunner,
  clock: Clock,
): JobFeeder | null {
  if (jobs === null) return null;
  const adopt = (accepted: AcceptedJob) => {
    const job = background.adopt(accepted);
    jobs.keepText(accepted.id, job.text);
    return job;
  };
  const feeder = new JobFeeder(jobs, runner, adopt, (job) => background.giveUp(job), clock);
  runner.onPutBack((job) => feeder.putBack(job));
  jobs.listen({ added: () => feeder.changed(), cancelled: (id) => background.cancelHere(id) });
  return feeder;
}

export function createClaims({ host, store, runner }: Setup & Pick<Parts, 'runner'>): Claims {
  return new Claims(store.answers, host.clock, () => runner.busySeconds);
}

export function createScrape({ host, metrics, lastHour }: Setup & Pick<Parts, 'metrics' | 'lastHour'>): Scrape {
  const onFailure = () => metrics.scrapeFailed();
  return new Scrape(metrics.registry, host.clock, onFailure, (families) => lastHour.counted(families));
}

export function createCaretakers(
  parts: Setup & Pick<Parts, 'breakers' | 'clis' | 'runner' | 'supervisor'>,
): readonly Caretaker[] {
  const { config, host, breakers, clis, runner, supervisor } = parts;
  const { clock, freeMemory } = host;
  return clis.all.map((cli, index) => {
    const { pool, history, findProgram } = cli;
    const load = new HostLoad(clock, freeMemory);
    const isReady = () => supervisor.phase === 'ready' && breakers.all[index]?.isClosed === true;
    const waitingJobs = () => clis.waitingFor(cli, runner.next);
    return new Caretaker(config.standby, { pool, history, findProgram, load, clock, waitingJobs, isReady });
  });
}

export function createFleet(parts: Setup & Pick<Parts, 'metrics' | 'supervisor' | 'scrape'> & WithBanner): Fleet {
  const { config, host, addresses, agent, metrics, supervisor, scrape, banner } = parts;
  const { clock, log } = host;
  const { workers: size, queueTimeoutMs, executionMs } = config;
  const maxExchangeMs = queueTimeoutMs + executionMs + exchangeOverheadMs;
  const observer: FleetObserver = {
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
  return new Fleet({ size, maxExchangeMs, fds: addresses.fds }, observer, clock, log);
}
