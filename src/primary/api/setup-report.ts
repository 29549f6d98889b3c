import type { ModelsBody } from '../../shared/api/models.js';
import type { SetupReport } from '../../shared/api/setup.js';
import type { Config } from '../../shared/config/config.js';
import type { ReadinessEntry } from '../../shared/readiness.js';
import { localUrl } from '../../shared/url.js';
import { createModelCli, type ModelCli } from '../cli/model-cli.js';
import { modelCatalog } from '../cli/models.js';
import { chooseAdapter } from '../cli/registry.js';
import type { Host } from '../lifecycle/host.js';
import { cliMetrics } from '../metrics/cli-metrics.js';
import { Readiness } from '../readiness/readiness.js';

/** Asks the model CLI what a readiness check would ask, and starts nothing else. */
export async function reportSetup(config: Config, host: Host): Promise<SetupReport> {
  const { adapter, warnings } = await chooseAdapter(config, host.env);
  const cli = createModelCli(config, host, adapter, cliMetrics());
  const check = await checkOnce(cli, host);
  const models = await modelCatalog(() => cli.program.listModels(), cli.models, host.clock)();
  await cli.pool.close();
  const keys = [...config.apiKeys, ...config.namedKeys].map(({ name }) => name);
  const found = { url: localUrl(config.host, config.port), keys, command: adapter.command, check, models };
  return setupReportOf({
    config,
    host,
    warnings: [...config.warnings, ...warnings, ...host.termination.warnings],
    ...found,
  });
}

/** What a report is made from. */
export interface SetupSources {
  readonly config: Config;
  readonly host: Pick<Host, 'termination'>;
  readonly url: string;
  /** Names of the API keys. */
  readonly keys: readonly string[];
  readonly command: readonly string[];
  readonly check: ReadinessEntry;
  readonly models: ModelsBody;
  readonly warnings: readonly string[];
}

export function setupReportOf({
  config,
  host,
  url,
  keys,
  command,
  check,
  models,
  warnings,
}: SetupSources): SetupReport {
  const { containments, fault } = host.termination;
  return {
    url,
    socket: config.socketPath,
    keys,
    needs_key: config.needsKey,
    local_users: config.localUsers,
    allowed_users: config.allowedUsers,
    workers: config.workers,
    max_concurrent: config.maxConcurrent,
    max_queue: config.maxQueue,
    queue_timeout_ms: config.queueTimeoutMs,
    execution_timeout_ms: config.executionMs,
    model_cli: { command, ...verdictOf(check) },
    models: models.models.map((model) => ({ id: model.id, default: model.default })),
    termination: { means: containments.means, no_cgroup: fault },
    warnings,
  };
}

function checkOnce({ program, adapter }: ModelCli, { clock, random }: Host): Promise<ReadinessEntry> {
  const settings = { adapter: adapter.name, intervalMs: 0, historyLimit: 1 };
  return new Readiness(() => program.check(), settings, clock, random).check('forced');
}

function verdictOf({ adapter, version, status, durationMs, error }: ReadinessEntry) {
  const unknown = status === 'unknown' ? 'no readiness check has ended yet' : null;
  return { adapter, version, ready: status === 'ready', duration_ms: durationMs, error: error ?? unknown };
}
