import type { Config } from '../shared/config/config.js';
import type { Inspection } from '../shared/inspection.js';
import type { ReadinessEntry } from '../shared/readiness.js';
import { localUrl } from '../shared/url.js';
import type { CliObserver } from './cli/cli-observer.js';
import type { ShelfObserver } from './cli/shelf.js';
import type { World } from './host/world.js';
import { ModelCatalog } from './model-catalog.js';
import { chooseAdapter, createModelCli, type ModelCli } from './model-cli.js';
import { Readiness } from './readiness/readiness.js';

/** Asks the model CLI what the readiness check of a service would ask, and starts nothing else. */
export async function inspectSetup(config: Config, world: World): Promise<Inspection> {
  const cli = createModelCli(config, world, await chooseAdapter(config, world), nobody, () => false);
  const check = await checkOnce(cli, world);
  const models = await new ModelCatalog(() => cli.program.listModels(), cli.models, world.clock).list();
  await cli.launcher.close();
  return {
    url: localUrl(config.host, config.port),
    socket: config.socketPath,
    keys: config.apiKeys.map(({ name }) => name),
    workers: config.workers,
    max_concurrent: config.maxConcurrent,
    max_queue: config.maxQueue,
    queue_timeout_ms: config.queueTimeoutMs,
    execution_timeout_ms: config.executionMs,
    model_cli: { command: cli.adapter.command, ...verdictOf(check) },
    models: models.models.map((model) => ({ id: model.id, default: model.default })),
    warnings: cli.warnings,
  };
}

function checkOnce({ program, adapter }: ModelCli, { clock, random }: World): Promise<ReadinessEntry> {
  const settings = { adapter: adapter.name, intervalMs: 0, historyLimit: 1 };
  return new Readiness(
    () => program.check(),
    settings,
    clock,
    random,
    () => {},
  ).check('forced');
}

function verdictOf({ adapter, version, status, durationMs, error }: ReadinessEntry) {
  return { adapter, version, ready: status === 'ready', duration_ms: durationMs, error };
}

const nobody: CliObserver & ShelfObserver = {
  exited: () => {},
  killed: () => {},
  orphansReaped: () => {},
  output: () => {},
  startedUp: () => {},
  standbyTaken: () => {},
  liveSessionTaken: () => {},
};
