import { describeError } from '../shared/log/logger.js';
import { clientBounds } from './access/client-bounds.js';
import { Clients } from './access/clients.js';
import {
  createBackground,
  createBanner,
  createClaims,
  createClis,
  createConversations,
  createFleet,
  createRunner,
  createScrape,
  createStandbyKeepers,
} from './builders.js';
import { secretsOf } from './cli/environment.js';
import { KnownModels } from './cli/known-models.js';
import { ModelCatalog } from './cli/model-catalog.js';
import { closeClis, forgetConversation } from './cli/model-cli.js';
import { Redactor } from './cli/process/redactor.js';
import { ModelRouter } from './cli/route.js';
import type { CircuitStatus } from './health/circuit.js';
import { SeenClients } from './health/seen-clients.js';
import { WaitingRoom } from './jobs/waiting-room.js';
import { type ShutdownSteps, Supervisor } from './lifecycle/supervisor.js';
import { LastHour } from './observe/last-hour.js';
import { PrimaryMetrics, storeListener } from './observe/primary-metrics.js';
import { addServiceGauges } from './observe/state-metrics.js';
import { UsageJournal } from './observe/usage-journal.js';
import { UsageLedger } from './observe/usage-ledger.js';
import type { Parts, Setup } from './parts.js';
import { SchemaChecker } from './threads/schema-checker.js';
import { TokenCounter } from './threads/token-counter.js';

const maxWaitingBytes = 64 * 1024 * 1024;

/** Builds all parts and ties them together. Nothing runs yet. */
export function compose(setup: Setup): Parts {
  const { config, host, named } = setup;
  const { clock, log } = host;
  const { maxConcurrent: maxActive, maxQueue: maxWaiting, cliLimits } = config;
  const clients = new Clients(config);
  const redactor = new Redactor(secretsOf(host.env, config), (digest) => clients.hasDigest(digest));
  const boundsOf = clientBounds(config, (client) => clients.optionsOf(client));
  const room = new WaitingRoom({ maxActive, maxWaiting, maxWaitingBytes, cliLimits }, clock, boundsOf);
  const memory = createConversations(setup);
  const keyNames = config.apiKeys.map(({ name }) => name);
  const cliNames = named.map(({ name }) => name);
  const metrics = new PrimaryMetrics(room, memory.conversations, keyNames, cliNames);
  const usage = new UsageLedger(clock);
  const usageJournal = new UsageJournal(usage, setup.store.usage, clock);
  const figures = { metrics, usage, usageJournal, lastHour: new LastHour(clock) };
  const onThreadError = (error: unknown) => log.error('internal_error', { error: describeError(error) });
  const threads = { tokens: new TokenCounter(clock, onThreadError), schemas: new SchemaChecker(clock, onThreadError) };
  const banner = createBanner(setup);
  const clientsSeen = new SeenClients();
  const onCircuit = ({ state }: CircuitStatus) => {
    if (state === 'open') runner.cutHeld();
    else room.next(); // what waits in the background may go
    for (const keeper of standbyKeepers) keeper.changed();
  };
  const clis = createClis({ ...setup, clientsSeen, metrics, redactor, banner, onCircuit });
  const router = new ModelRouter(config, clis, (client) => clients.optionsOf(client).models);
  const catalog = new ModelCatalog(clis, router, config.modelAliases, clock);
  const knownModels = new KnownModels({ router, catalog, clock });
  const ofClis = { clientsSeen, clis, router, catalog, knownModels };
  const state = { ...setup, clients, redactor, room, ...memory, ...figures, ...threads, ...ofClis };
  const runner = createRunner(state);
  const background = createBackground({ ...state, runner });
  const claims = createClaims({ ...setup, runner });
  const supervisor = new Supervisor(config.drainMs, clock, log, host.exit);
  const standbyKeepers = createStandbyKeepers({ ...setup, clis, runner, supervisor });
  const scrape = createScrape(state);
  const workers = createFleet({ ...setup, metrics, supervisor, scrape, banner });
  const parts = { ...state, runner, ...background, claims, supervisor, standbyKeepers, scrape, workers };
  linkBack(parts);
  return parts;
}

/** What an earlier part tells a later one. */
function linkBack(parts: Parts): void {
  const { host, room, conversations, store, metrics, clis, backgroundRunner, supervisor, workers } = parts;
  const { standbyKeepers } = parts;
  const lookAround = () => {
    for (const keeper of standbyKeepers) keeper.changed();
  };
  room.onChange(() => {
    lookAround();
    parts.feeder?.changed();
  });
  conversations.onRemoved((cause, id) => {
    metrics.conversations.removed(cause);
    forgetConversation(clis, id);
    if (cause !== 'deleted') store.conversations.forget(id); // else it is no longer there
  });
  parts.shared?.onStale((id) => forgetConversation(clis, id));
  store.observe(storeListener(host.log, metrics));
  supervisor.attach(shutdownSteps(parts), (phase) => {
    workers.tell((peer) => peer.call('phase', { phase }));
    host.systemd.announce(phase);
    lookAround();
    if (phase === 'draining' && store.jobs.isDurable) backgroundRunner.stop(); // what waits is for the next service
  });
  addServiceGauges(metrics.registry, parts);
}

function shutdownSteps({
  addresses,
  agent,
  store,
  usageJournal,
  room,
  runner,
  backgroundRunner,
  workers,
  standbyKeepers,
  clis,
  host,
}: Parts): ShutdownSteps {
  return {
    idle: async () => {
      await backgroundRunner.idle();
      await room.idle();
    },
    counts: () => ({ running: room.active, queued: room.waiting }),
    cutAll: (reason) => {
      backgroundRunner.stop();
      runner.cutAll(reason);
    },
    stopWorkers: async (limitMs) => {
      addresses.close(); // else clients would wait for a worker that never comes
      agent?.close();
      const isAllSent = await workers.stop(limitMs);
      await usageJournal.close();
      await store.close();
      return isAllSent;
    },
    endProcesses: async () => {
      for (const { health } of clis) health.stop();
      for (const keeper of standbyKeepers) keeper.stop();
      await closeClis(clis, host);
    },
  };
}
