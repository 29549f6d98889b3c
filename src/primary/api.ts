import type { ModelsBody } from '../shared/api/models.js';
import { shuttingDown } from '../shared/errors.js';
import type { DoorSettings } from '../shared/ipc/protocol.js';
import type { Phase } from '../shared/phase.js';
import type { ConversationStore } from './conversations/conversation-store.js';
import type { SharedHandlers } from './fleet/worker-peer.js';
import type { JobRunner } from './jobs/job-runner.js';
import type { JobMetrics } from './metrics/job-metrics.js';
import type { RateLimit } from './rate-limit.js';
import type { Status } from './status.js';

/** What the primary answers its workers with. */
export interface Services {
  phase(): Phase;
  doorSettings(): DoorSettings;
  readonly runner: Pick<JobRunner, 'run'>;
  readonly conversations: Pick<ConversationStore, 'snapshot' | 'remove'>;
  readonly rateLimit: Pick<RateLimit, 'take'>;
  readonly jobMetrics: Pick<JobMetrics, 'refusedDraining' | 'rateLimited'>;
  readonly status: Pick<Status, 'health' | 'isUsable' | 'history' | 'version'>;
  recheck(): Promise<void>;
  models(): Promise<ModelsBody>;
  metrics(): Promise<string>;
}

/** Every call of the protocol, for one worker; its heartbeat is the fleet's own business. */
export function apiHandlers(services: Services): SharedHandlers {
  const { runner, conversations, status, jobMetrics } = services;
  const healthText = () => ({ text: JSON.stringify(status.health()), isUsable: status.isUsable });
  return {
    hello: () => services.doorSettings(),
    health: healthText,
    history: ({ since }) => status.history(since),
    version: () => status.version(),
    recheck: async () => {
      await services.recheck();
      return healthText();
    },
    models: () => services.models(),
    metrics: async () => ({ text: await services.metrics() }),
    conversation: ({ id, owner }) => conversations.snapshot(id, owner),
    deleteConversation: ({ id, owner }) => {
      conversations.remove(id, owner);
      return {};
    },
    refusedDraining: () => {
      jobMetrics.refusedDraining();
      return {};
    },
    rate: async ({ address }) => {
      const verdict = await services.rateLimit.take(address);
      if (!verdict.isAllowed) jobMetrics.rateLimited();
      return verdict;
    },
    run: (request, signal) => {
      if (services.phase() === 'ready') return runner.run(request, signal);
      jobMetrics.refusedDraining(); // the worker has not heard of the drain yet
      throw shuttingDown();
    },
  };
}
