import type { ModelsBody } from '../../shared/api/models.js';
import type { SetupReport } from '../../shared/api/setup.js';
import type { UsageReport } from '../../shared/api/usage.js';
import { shuttingDown, toRelayError } from '../../shared/errors.js';
import type { RequestOf } from '../../shared/ipc/message.js';
import type { PrimaryCalls, WorkerSettings } from '../../shared/ipc/protocol.js';
import type { JobRequest } from '../../shared/job.js';
import type { Phase } from '../../shared/phase.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { KeptConversations } from '../conversations/kept-conversations.js';
import type { SharedHandlers } from '../fleet/worker-peer.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { JobStream } from '../jobs/job-stream.js';
import type { KeyBrake } from '../limits/key-brake.js';
import type { RateLimit } from '../limits/rate-limit.js';
import type { ClientMetrics } from '../metrics/client-metrics.js';
import type { JobMetrics } from '../metrics/job-metrics.js';
import type { SchemaChecker } from '../structured/schema-checker.js';
import type { TokenCounter } from '../tokens/token-counter.js';
import type { UsageLedger } from '../usage/usage-ledger.js';
import type { Sections } from './live-status.js';
import type { Status } from './status.js';
import { type StatusFeed, statusOf } from './status-feed.js';

/** What the primary answers its workers with. */
export interface Services {
  phase(): Phase;
  workerSettings(): WorkerSettings;
  readonly runner: Pick<JobRunner, 'run' | 'busySeconds'>;
  readonly tokens: Pick<TokenCounter, 'count'>;
  readonly schemas: Pick<SchemaChecker, 'faultOf'>;
  readonly conversations: Pick<ConversationStore, 'snapshot' | 'list' | 'read'>;
  readonly kept: Pick<KeptConversations, 'remove' | 'fork'>;
  readonly rateLimit: Pick<RateLimit, 'take'>;
  readonly keyBrake: Pick<KeyBrake, 'failed'>;
  readonly jobMetrics: Pick<JobMetrics, 'refusedDraining' | 'rateLimited'>;
  readonly usage: Pick<UsageLedger, 'report' | 'refused'>;
  readonly clientMetrics: Pick<ClientMetrics, 'refused'>;
  readonly status: Pick<Status, 'health' | 'isUsable' | 'history' | 'version'>;
  /** The live status, and what tells of its changes: with names of clients and process ids, and without. */
  readonly live: Readonly<Record<'named' | 'nameless', LiveStatus>>;
  setup(): Promise<SetupReport>;
  recheck(): Promise<void>;
  models(): Promise<ModelsBody>;
  metrics(): Promise<string>;
  /** Is told of each call that leaves garbage behind. */
  worked(): void;
}

interface LiveStatus {
  readonly sections: Sections;
  readonly feed: Pick<StatusFeed, 'watch'>;
}

/** A handler for every call that all workers are answered alike. */
export function apiHandlers(services: Services): SharedHandlers {
  const { jobMetrics } = services;
  return {
    hello: () => services.workerSettings(),
    ...statusHandlers(services),
    models: () => services.models(),
    metrics: async () => ({ text: await services.metrics() }),
    ...conversationHandlers(services),
    refusedDraining: ({ client }) => refuseDraining(services, client),
    rate: async ({ client }) => {
      const verdict = await services.rateLimit.take(client);
      if (verdict.isAllowed) return verdict;
      jobMetrics.rateLimited();
      countRefusal(services, client);
      return verdict;
    },
    wrongKey: ({ caller }) => ({ blockedSeconds: services.keyBrake.failed(caller) }),
    usage: (order) => usageText(services, order),
    schemaFault: async ({ schema, client }) => ({ fault: await schemaFault(services, schema, client) }),
    countTokens: async ({ texts }) => ({ tokens: await services.tokens.count(texts) }),
    run: (request, signal) => {
      services.worked();
      if (!isOver(services.phase())) return admitted(services, request, signal);
      const { retryAfterSeconds } = refuseDraining(services, request.client); // the worker does not know of the drain yet
      throw shuttingDown(retryAfterSeconds);
    },
  };
}

type StatusCalls = 'health' | 'history' | 'version' | 'recheck' | 'status' | 'statusFeed' | 'setup';

/** What is told of the service itself. */
function statusHandlers(services: Services): Pick<SharedHandlers, StatusCalls> {
  const { status, live } = services;
  const liveOf = (withNames: boolean) => live[withNames ? 'named' : 'nameless'];
  const healthText = (withPids: boolean) => {
    services.worked();
    return { text: JSON.stringify(status.health(withPids)), isUsable: status.isUsable };
  };
  return {
    health: ({ withPids }) => healthText(withPids),
    history: ({ since, withPids }) => status.history(since, withPids),
    version: () => status.version(),
    recheck: async () => {
      await services.recheck();
      return healthText(true);
    },
    status: ({ withNames }) => {
      services.worked();
      return { text: JSON.stringify(statusOf(liveOf(withNames).sections)) };
    },
    statusFeed: ({ withNames }, signal) => liveOf(withNames).feed.watch(signal),
    setup: () => services.setup(),
  };
}

type ConversationCalls = 'conversation' | 'deleteConversation' | 'conversations' | 'transcript' | 'forkConversation';

function conversationHandlers({ conversations, kept, worked }: Services): Pick<SharedHandlers, ConversationCalls> {
  return {
    conversation: ({ id, client }) => conversations.snapshot(id, client),
    deleteConversation: ({ id, client }) => kept.remove(id, client),
    conversations: ({ client, before, limit }) => {
      worked();
      return conversations.list(client, before, limit);
    },
    transcript: (order) => {
      worked();
      return conversations.read(order);
    },
    forkConversation: ({ id, client, messageCount }) => kept.fork(id, client, messageCount),
  };
}

async function schemaFault(services: Services, schema: string, client: string): Promise<string | null> {
  try {
    return await services.schemas.faultOf(schema, client);
  } catch (error) {
    countRefusal(services, client);
    throw error;
  }
}

function admitted(services: Services, request: JobRequest, signal: AbortSignal): JobStream {
  try {
    return services.runner.run(request, signal);
  } catch (error) {
    if (toRelayError(error).code === 'concurrency_limited') countRefusal(services, request.client);
    throw error;
  }
}

function refuseDraining(services: Services, client: string): { readonly retryAfterSeconds: number } {
  services.jobMetrics.refusedDraining();
  countRefusal(services, client);
  return { retryAfterSeconds: services.runner.busySeconds };
}

function countRefusal({ usage, clientMetrics }: Services, client: string): void {
  usage.refused(client);
  clientMetrics.refused(client);
}

function usageText(services: Services, { client, isAdmin, ...period }: RequestOf<PrimaryCalls, 'usage'>) {
  services.worked();
  const usage = services.usage.report(isAdmin ? null : client, period);
  return { text: JSON.stringify({ usage } satisfies UsageReport) };
}

function isOver(phase: Phase): boolean {
  return phase === 'draining' || phase === 'stopped';
}
