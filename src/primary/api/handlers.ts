import type { ClientText } from '../../shared/client.js';
import type { WorkerSettings } from '../../shared/ipc/protocol.js';
import type { KeyAttempts } from '../access/key-attempts.js';
import type { RateLimit } from '../access/rate-limit.js';
import type { UserConnections } from '../access/user-connections.js';
import type { ModelCatalog } from '../cli/model-catalog.js';
import type { ModelRouter } from '../cli/route.js';
import type { FeatureHooks } from '../features/feature-hooks.js';
import type { JobEntry } from '../jobs/job-entry.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { JobMetrics } from '../observe/job-metrics.js';
import type { Status } from '../observe/status.js';
import type { SchemaChecker } from '../threads/schema-checker.js';
import type { SharedHandlers } from '../workers/worker-handle.js';

/** Parts of the primary that answer the calls of the workers. */
export interface Services {
  workerSettings(): WorkerSettings;
  readonly runner: Pick<JobRunner, 'run'>;
  readonly jobEntry: Pick<JobEntry, 'admit' | 'countRefusal' | 'refuseDraining'>;
  readonly features: Pick<FeatureHooks, 'beforeAct' | 'handlers' | 'mayStore'>;
  readonly schemas: Pick<SchemaChecker, 'faultOf' | 'firstFault'>;
  readonly rateLimit: Pick<RateLimit, 'takeRequest'>;
  readonly keyAttempts: Pick<KeyAttempts, 'recordWrongKey'>;
  readonly connections: Pick<UserConnections, 'holdConnection'>;
  readonly jobMetrics: Pick<JobMetrics, 'countRateLimited'>;
  readonly toolsIgnored: SharedHandlers['toolsIgnored'];
  readonly status: Pick<Status, 'health' | 'isUsable' | 'history' | 'version'>;
  /** Operations of an operator on the store. */
  readonly upkeep: Pick<SharedHandlers, 'backupStore' | 'verifyStore' | 'purgeClient'>;
  recheck(): Promise<void>;
  readonly catalog: Pick<ModelCatalog, 'list' | 'findModel'>;
  readonly router: Pick<ModelRouter, 'route'>;
  /** Called after each call that leaves garbage, to schedule garbage collection. */
  noteActivity(): void;
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
    ...services.upkeep,
    ...services.features.handlers,
    mayStore: ({ client }) => ({ mayStore: services.features.mayStore(client) }),
    refusedDraining: ({ client }) => services.jobEntry.refuseDraining(client),
    rate: async ({ client }) => {
      const verdict = await services.rateLimit.takeRequest(client);
      if (verdict.isAllowed) return verdict;
      jobMetrics.countRateLimited();
      services.jobEntry.countRefusal(client);
      return verdict;
    },
    toolsIgnored: services.toolsIgnored,
    connection: ({ uid }, signal) => services.connections.holdConnection(uid, signal),
    wrongKey: ({ caller }) => ({ blockedSeconds: services.keyAttempts.recordWrongKey(caller) }),
    schemaFault: async ({ schema, client }) => ({
      fault: await orRefused(services, client, () => services.schemas.faultOf(schema, client)),
    }),
    toolFault: async ({ schemas, client }) => ({
      wrong: await orRefused(services, client, () => services.schemas.firstFault(schemas, client)),
    }),
    run: (request, signal) => services.jobEntry.admit(request, (job) => services.runner.run(job, signal)),
  };
}

/** Returns the handlers for the state of the service. */
function statusHandlers(services: Services) {
  const { status } = services;
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
  } satisfies Partial<SharedHandlers>;
}

/** Runs a check, and counts a refusal if it rejects. */
async function orRefused<T>(services: Services, client: ClientText, check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    services.jobEntry.countRefusal(client);
    throw error;
  }
}
