import type { SetupReport } from '../../shared/api/setup.js';
import type { UsageReport } from '../../shared/api/usage.js';
import { optionHolder, readClientId } from '../../shared/client.js';
import { type RelayError, shuttingDown, toRelayError } from '../../shared/errors.js';
import type { RequestOf } from '../../shared/ipc/peer.js';
import type { PrimaryCalls, WorkerSettings } from '../../shared/ipc/protocol.js';
import type { JobRequest } from '../../shared/job.js';
import type { Phase } from '../../shared/phase.js';
import type { Clients } from '../access/clients.js';
import type { KeyAttempts } from '../access/key-attempts.js';
import type { RateLimit } from '../access/rate-limit.js';
import type { UserConnections } from '../access/user-connections.js';
import { KnownModels, type ModelCatalog } from '../cli/model-catalog.js';
import type { ModelRouter } from '../cli/route.js';
import type { TokenFactors } from '../cli/token-factors.js';
import type { TurnGate } from '../conversations/turn-gate.js';
import type { FeatureHooks } from '../features/feature-hooks.js';
import type { BackgroundJobs } from '../jobs/background-jobs.js';
import type { ClientJobs } from '../jobs/client-jobs.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { ClientMetrics, JobMetrics } from '../observe/job-metrics.js';
import type { LastHour } from '../observe/last-hour.js';
import type { Status } from '../observe/status.js';
import type { StatusFeed } from '../observe/status-feed.js';
import type { UsageJournal } from '../observe/usage-journal.js';
import type { UsageLedger } from '../observe/usage-ledger.js';
import type { SchemaChecker } from '../threads/schema-checker.js';
import type { TokenCounter } from '../threads/token-counter.js';
import type { SharedHandlers } from '../workers/worker-handle.js';
import { type ConversationServices, conversationHandlers } from './conversation-handlers.js';
import { type ResponseServices, responseHandlers } from './response-handlers.js';

/** Parts of the primary that answer the calls of the workers. */
export interface Services extends ConversationServices, ResponseServices {
  phase(): Phase;
  /** Returns the remaining seconds of a drain. */
  drainSecondsLeft(): number;
  workerSettings(): WorkerSettings;
  readonly runner: Pick<JobRunner, 'run'>;
  readonly background: Pick<BackgroundJobs, 'accept'>;
  readonly features: Pick<FeatureHooks, 'admitBackground' | 'startJob' | 'limitUsesOf' | 'beforeAct' | 'handlers'>;
  readonly clientJobs: Pick<ClientJobs, 'view' | 'events' | 'answer' | 'list' | 'openTurns' | 'cancel' | 'delete'>;
  readonly tokens: Pick<TokenCounter, 'countTokens'>;
  readonly schemas: Pick<SchemaChecker, 'faultOf' | 'firstFault'>;
  readonly knownModels: Pick<KnownModels, 'explain'>;
  readonly turnGate: Pick<TurnGate, 'admitting'>;
  readonly rateLimit: Pick<RateLimit, 'takeRequest'>;
  readonly keyAttempts: Pick<KeyAttempts, 'recordWrongKey'>;
  readonly connections: Pick<UserConnections, 'holdConnection'>;
  readonly jobMetrics: Pick<JobMetrics, 'countDrainRefusal' | 'countBudgetRefusal' | 'countRateLimited'>;
  readonly toolsIgnored: SharedHandlers['toolsIgnored'];
  readonly clients: Pick<Clients, 'checkAccess' | 'countedGroupsOf'>;
  readonly usage: Pick<UsageLedger, 'countRefusal'> & Pick<UsageJournal, 'report'>;
  readonly clientMetrics: Pick<ClientMetrics, 'countRefusal'>;
  readonly lastHour: Pick<LastHour, 'countRefusal'>;
  readonly status: Pick<Status, 'health' | 'isUsable' | 'history' | 'version'>;
  /** Feeds with and without names of clients and process ids. */
  readonly feeds: Readonly<Record<'named' | 'nameless', Pick<StatusFeed, 'text' | 'watch'>>>;
  /** Operations of an operator on the store. */
  readonly upkeep: Pick<SharedHandlers, 'backupStore' | 'verifyStore' | 'purgeClient'>;
  setup(): Promise<SetupReport>;
  recheck(): Promise<void>;
  readonly catalog: Pick<ModelCatalog, 'list' | 'findModel' | 'resolveName' | 'resolveRequest'>;
  readonly router: Pick<ModelRouter, 'route'>;
  readonly tokenFactors: Pick<TokenFactors, 'factorOf'>;
  /** Resolves when the workers have reported their figures. */
  countRequests(): Promise<void>;
  metrics(): Promise<string>;
}

/** Returns the handlers of all calls that are the same for every worker. */
export function apiHandlers(services: Services): SharedHandlers {
  const { jobMetrics } = services;
  return {
    hello: () => services.workerSettings(),
    ...statusHandlers(services),
    models: () => services.catalog.list(),
    model: async ({ name }) => ({ model: await services.catalog.findModel(name) }),
    metrics: async () => ({ text: await services.metrics() }),
    ...conversationHandlers(services),
    ...responseHandlers(services),
    ...services.upkeep,
    ...services.features.handlers,
    refusedDraining: ({ client }) => refuseDraining(services, client),
    rate: async ({ client }) => {
      const verdict = await services.rateLimit.takeRequest(client);
      if (verdict.isAllowed) return verdict;
      jobMetrics.countRateLimited();
      countRefusal(services, client);
      return verdict;
    },
    toolsIgnored: services.toolsIgnored,
    connection: ({ uid }, signal) => services.connections.holdConnection(uid, signal),
    wrongKey: ({ caller }) => ({ blockedSeconds: services.keyAttempts.recordWrongKey(caller) }),
    usage: (order) => usageText(services, order),
    schemaFault: async ({ schema, client }) => ({
      fault: await orRefused(services, client, () => services.schemas.faultOf(schema, client)),
    }),
    toolFault: async ({ schemas, client }) => ({
      wrong: await orRefused(services, client, () => services.schemas.firstFault(schemas, client)),
    }),
    countTokens: (order) => countTokens(services, order),
    run: (request, signal) => admitJob(services, request, (job) => services.runner.run(job, signal)),
    ...backgroundHandlers(services),
  };
}

/** Counts the tokens of texts, as the model would. */
async function countTokens(
  { tokens, catalog, router, tokenFactors }: Services,
  {
    texts,
    client,
    model,
  }: { readonly texts: readonly string[]; readonly client: string; readonly model: string | null },
): Promise<{ tokens: number }> {
  const resolved = model === null ? null : await catalog.resolveName(model);
  const factor = tokenFactors.factorOf(router.route({ model: resolved, client }));
  return { tokens: Math.round((await tokens.countTokens(texts, client)) * factor) };
}

/** Returns the handlers for the state of the service. */
function statusHandlers(services: Services) {
  const { status, feeds } = services;
  const feedOf = (withNames: boolean) => feeds[withNames ? 'named' : 'nameless'];
  const healthText = (withPids: boolean) => {
    services.noteActivity();
    return { text: JSON.stringify(status.health(withPids)), isUsable: status.isUsable };
  };
  return {
    health: ({ withPids }) => healthText(withPids),
    history: ({ since, withPids }) => status.history(since, withPids),
    version: () => status.version(),
    recheck: async ({ by }) => {
      const { client, requestId } = by;
      await services.features.beforeAct({ act: 'health_rechecked', by: client, target: null, request_id: requestId });
      await services.recheck();
      return healthText(true);
    },
    status: async ({ withNames }) => {
      await services.countRequests();
      services.noteActivity();
      return { text: feedOf(withNames).text };
    },
    statusFeed: ({ withNames }, signal) => feedOf(withNames).watch(signal),
    setup: () => services.setup(),
  } satisfies Partial<SharedHandlers>;
}

/** Runs a check, and counts a refusal if it rejects. */
async function orRefused<T>(services: Services, client: string, check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    countRefusal(services, client);
    throw error;
  }
}

type BackgroundCalls = 'accept' | 'job' | 'jobEvents' | 'jobAnswer' | 'jobs' | 'cancelJob' | 'deleteJob';

function backgroundHandlers(services: Services): Pick<SharedHandlers, BackgroundCalls> {
  const { background, clientJobs, yieldInOrder } = services;
  return {
    accept: async ({ job: request, form, id }) => {
      services.features.admitBackground(request, form, id);
      return admitJob(services, request, (job) => background.accept(job, form, id));
    },
    job: ({ id, client }) => clientJobs.view(id, client),
    jobEvents: ({ id, client }, signal) => clientJobs.events(id, client, signal),
    jobAnswer: async ({ id, client, from }) => {
      await yieldInOrder();
      return clientJobs.answer(id, client, from);
    },
    jobs: (order) => clientJobs.list(order),
    cancelJob: ({ id, client }) => clientJobs.cancel(id, client),
    deleteJob: async (order) => ({ status: await clientJobs.delete(order) }),
  };
}

/**
 * Admits the job of a caller or a background job: finds its model, then waits until no other host changes its
 * conversation. The remaining checks and `admit` run together, so that no other job comes between them.
 */
async function admitJob<T>(
  services: Services,
  request: JobRequest,
  admit: (job: JobRequest) => T | Promise<T>,
): Promise<T> {
  services.noteActivity();
  const { groups: named, ...resolved } = await services.catalog.resolveRequest(request);
  const groups = services.clients.countedGroupsOf(request.client, named ?? []);
  const job = { ...resolved, ...(groups.length > 0 && { groups }) };
  try {
    return await services.turnGate.admitting(job, () => {
      // The worker may not know of a drain yet.
      if (isOver(services.phase())) throw shuttingDown(services.drainSecondsLeft());
      // the runner checks both again when a waiting job gets its slot
      services.clients.checkAccess(job.client, services.clock.now());
      services.features.startJob(job);
      return admit(job);
    });
  } catch (error) {
    countRefusedJob(services, job.client, toRelayError(error));
    throw KnownModels.isUnknown(error) ? await services.knownModels.explain(error, job.client) : error;
  }
}

/** Counts a job that was refused by a drain, by its budget or for lack of space, but no invalid one. */
function countRefusedJob(services: Services, client: string, { code, reason }: RelayError): void {
  if (code === 'shutting_down') services.jobMetrics.countDrainRefusal();
  else if (reason === 'budget') services.jobMetrics.countBudgetRefusal();
  else if (code !== 'concurrency_limited') return;
  countRefusal(services, client);
}

function refuseDraining(services: Services, client: string): { readonly retryAfterSeconds: number } {
  services.jobMetrics.countDrainRefusal();
  countRefusal(services, client);
  return { retryAfterSeconds: services.drainSecondsLeft() };
}

function countRefusal({ usage, clientMetrics, lastHour }: Services, client: string): void {
  lastHour.countRefusal();
  usage.countRefusal(client);
  clientMetrics.countRefusal(client);
}

async function usageText(services: Services, { client, scopes, ...order }: RequestOf<PrimaryCalls, 'usage'>) {
  services.noteActivity();
  const isAdmin = scopes?.includes('admin') === true;
  const usage = await services.usage.report(isAdmin ? null : client, order);
  const { kind, name } = readClientId(optionHolder(client));
  const budgets = services.features.limitUsesOf(isAdmin ? null : client);
  return { text: JSON.stringify({ caller: { client: name, kind, scopes }, usage, budgets } satisfies UsageReport) };
}

function isOver(phase: Phase): boolean {
  return phase === 'draining' || phase === 'stopped';
}
