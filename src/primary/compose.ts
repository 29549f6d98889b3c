import type { Clock } from '../shared/clock.js';
import { describeError } from '../shared/logger.js';
import { Redactor } from '../shared/redactor.js';
import {
  createBackground,
  createBanner,
  createCaretakers,
  createClaims,
  createClis,
  createConversations,
  createFleet,
  createReadiness,
  createRunner,
  createScrape,
} from './builders.js';
import { secretsOf } from './cli/environment.js';
import { KnownModels } from './cli/known-models.js';
import type { ModelClis } from './cli/model-clis.js';
import { ModelRouter, type ModelsOf } from './cli/model-router.js';
import { Clients } from './clients/clients.js';
import { CliGates } from './jobs/cli-gates.js';
import { SlotQueue } from './jobs/slot-queue.js';
import { type ShutdownSteps, Supervisor } from './lifecycle/supervisor.js';
import { Breakers } from './limits/breakers.js';
import { clientBounds } from './limits/client-bounds.js';
import { SeenClients } from './limits/seen-clients.js';
import { LastHour } from './metrics/last-hour.js';
import { PrimaryMetrics } from './metrics/primary-metrics.js';
import { addServiceGauges } from './metrics/service-gauges.js';
import type { Parts, Setup } from './parts.js';
import { type BreakerAudience, breakerListener } from './readiness/breaker-listener.js';
import { storeListener } from './readiness/store-listener.js';
import { SchemaChecker } from './structured/schema-checker.js';
import { TokenCounter } from './tokens/token-counter.js';
import { KeptUsage } from './usage/kept-usage.js';
import { UsageLedger } from './usage/usage-ledger.js';

const maxWaitingBytes = 64 * 1024 * 1024;

/** Builds all parts and ties them together. Nothing runs yet. */
export function compose(setup: Setup): Parts {
  const { config, host, named } = setup;
  const { clock, log } = host;
  const { maxConcurrent: maxActive, maxQueue: maxWaiting } = config;
  const clients = new Clients(config);
  const redactor = new Redactor(secretsOf(host.env, config), (digest) => clients.hasDigest(digest));
  const boundsOf = clientBounds(config, (client) => clients.optionsOf(client));
  const slots = new SlotQueue({ maxActive, maxWaiting, maxWaitingBytes }, clock, boundsOf);
  const modelsOf = (client: string) => clients.optionsOf(client).models;
  const router = new ModelRouter(config, named, modelsOf);
  const breakers = new Breakers(named, router, clock, new SeenClients());
  const cliGates = new CliGates(
    config.cliLimits,
    (request) => router.cliOf(request),
    (client) => slots.isAtLimit(client),
  );
  const memory = createConversations(setup);
  const keyNames = config.apiKeys.map(({ name }) => name);
  const metrics = new PrimaryMetrics(slots, memory.conversations, keyNames, router.clis);
  const usage = new UsageLedger(clock);
  const keptUsage = new KeptUsage(usage, setup.store.usage, clock);
  const figures = { metrics, usage, keptUsage, lastHour: new LastHour(clock) };
  const onThreadError = (error: unknown) => log.error('internal_error', { error: describeError(error) });
  const threads = { tokens: new TokenCounter(clock, onThreadError), schemas: new SchemaChecker(clock, onThreadError) };
  const clis = createClis({ ...setup, router, breakers, metrics, redactor });
  const names = namesOf(clis, (client) => router.modelsOf(client), clock);
  const banner = createBanner(setup);
  const readiness = createReadiness({ ...setup, breakers, metrics, clis, banner });
  const ofClis = { router, breakers, clis, ...names, readiness, cliGates };
  const state = { ...setup, clients, redactor, slots, ...memory, ...figures, ...threads, ...ofClis };
  const runner = createRunner(state);
  const background = createBackground({ ...state, runner });
  const claims = createClaims({ ...setup, runner });
  const supervisor = new Supervisor(config.drainMs, clock, log, host.exit);
  const caretakers = createCaretakers({ ...setup, breakers, clis, runner, supervisor });
  const scrape = createScrape(state);
  const fleet = createFleet({ ...setup, metrics, supervisor, scrape, banner });
  const parts = { ...state, runner, ...background, claims, supervisor, caretakers, scrape, fleet };
  linkBack(parts);
  return parts;
}

function namesOf(clis: ModelClis, modelsOf: ModelsOf, clock: Clock): Pick<Parts, 'catalog' | 'knownModels'> {
  const catalog = clis.catalog(clock);
  return { catalog, knownModels: new KnownModels({ choice: clis.models, modelsOf, list: catalog, clock }) };
}

/** What an earlier part tells a later one. */
function linkBack(parts: Parts): void {
  const { host, slots, conversations, store, metrics, clis, backgroundRunner, supervisor, caretakers, fleet } = parts;
  const lookAround = () => {
    for (const caretaker of caretakers) caretaker.changed();
  };
  slots.onChange(() => {
    parts.cliGates.changed();
    lookAround();
    backgroundRunner.changed();
    parts.feeder?.changed();
  });
  conversations.onRemoved((cause, id) => {
    metrics.conversations.removed(cause);
    clis.forget(id);
    if (cause !== 'deleted') store.conversations.forget(id); // else it is no longer there
  });
  parts.shared?.onStale((id) => clis.forget(id));
  store.observe(storeListener(host.log, metrics));
  supervisor.attach(shutdownSteps(parts), (phase) => {
    fleet.tell((peer) => peer.call('phase', { phase }));
    host.systemd.announce(phase);
    lookAround();
    if (phase === 'draining' && store.jobs.isDurable) backgroundRunner.stop(); // what waits is for the next service
  });
  parts.breakers.all.forEach((breaker, at) => {
    breaker.listen(breakerListener(audienceOf(parts, at)));
  });
  addServiceGauges(metrics.registry, parts);
}

/** Who is told of the breaker of one CLI. */
function audienceOf({ runner, readiness, caretakers, breakers, clis, host }: Parts, at: number): BreakerAudience {
  return {
    runner,
    readiness: readiness.all[at] ?? readiness.all[0],
    pool: (clis.all[at] ?? clis.first).pool,
    changed: () => caretakers[at]?.changed(),
    log: host.log,
    named: (status) => breakers.named(at, status),
  };
}

function shutdownSteps({
  addresses,
  agent,
  store,
  keptUsage,
  slots,
  runner,
  backgroundRunner,
  fleet,
  readiness,
  breakers,
  caretakers,
  clis,
}: Parts): ShutdownSteps {
  return {
    idle: async () => {
      await backgroundRunner.idle();
      await slots.idle();
    },
    counts: () => ({ running: slots.active, queued: slots.waiting }),
    cutAll: (reason) => {
      backgroundRunner.stop();
      runner.cutAll(reason);
    },
    stopWorkers: async (limitMs) => {
      addresses.close(); // else clients would wait for a worker that never comes
      agent?.close();
      const isAllSent = await fleet.stop(limitMs);
      await keptUsage.close();
      await store.close();
      return isAllSent;
    },
    endProcesses: async () => {
      readiness.stop();
      breakers.stop();
      for (const caretaker of caretakers) caretaker.stop();
      await clis.close();
    },
  };
}
