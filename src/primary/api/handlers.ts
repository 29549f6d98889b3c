import type { ModelsBody } from '../../shared/api/models.js';
import { shuttingDown } from '../../shared/errors.js';
import type { WorkerSettings } from '../../shared/ipc/protocol.js';
import type { Phase } from '../../shared/phase.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { SharedHandlers } from '../fleet/worker-peer.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { RateLimit } from '../limits/rate-limit.js';
import type { JobMetrics } from '../metrics/job-metrics.js';
import type { Status } from './status.js';

/** What the primary answers its workers with. */
export interface Services {
  phase(): Phase;
  workerSettings(): WorkerSettings;
  readonly runner: Pick<JobRunner, 'run'>;
  readonly conversations: Pick<ConversationStore, 'snapshot' | 'remove'>;
  readonly rateLimit: Pick<RateLimit, 'take'>;
  readonly jobMetrics: Pick<JobMetrics, 'refusedDraining' | 'rateLimited'>;
  readonly status: Pick<Status, 'health' | 'isUsable' | 'history' | 'version'>;
  recheck(): Promise<void>;
  models(): Promise<ModelsBody>;
  metrics(): Promise<string>;
  /** Is told of each call that leaves garbage behind. */
  worked(): void;
}

/** A handler for every call that all workers are answered alike. */
export function apiHandlers(services: Services): SharedHandlers {
  const { runner, conversations, status, jobMetrics } = services;
  const healthText = () => {
    services.worked();
    return { text: JSON.stringify(status.health()), isUsable: status.isUsable };
  };
  return {
    hello: () => services.workerSettings(),
    health: healthText,
    history: ({ since }) => status.history(since),
    version: () => status.version(),
    recheck: async () => {
      await services.recheck();
      return healthText();
    },
    models: () => services.models(),
    metrics: async () => ({ text: await services.metrics() }),
    conversation: ({ id, client }) => conversations.snapshot(id, client),
    deleteConversation: ({ id, client }) => conversations.remove(id, client),
    refusedDraining: () => jobMetrics.refusedDraining(),
    rate: async ({ client }) => {
      const verdict = await services.rateLimit.take(client);
      if (!verdict.isAllowed) jobMetrics.rateLimited();
      return verdict;
    },
    run: (request, signal) => {
      services.worked();
      if (!isOver(services.phase())) return runner.run(request, signal);
      jobMetrics.refusedDraining(); // the worker does not know of the drain yet
      throw shuttingDown();
    },
  };
}

function isOver(phase: Phase): boolean {
  return phase === 'draining' || phase === 'stopped';
}
