import type { FileFaults } from '../../primary/access/file-faults.js';
import type { ModelCli } from '../../primary/cli/model-cli.js';
import type { AtLeastOne } from '../../primary/cli/models.js';
import type { Host } from '../../primary/lifecycle/host.js';
import { firstAndAll } from '../../primary/observe/status.js';
import type { ModelList } from '../../shared/api/models.js';
import type { SetupReport } from '../../shared/api/setup.js';
import type { Config } from '../../shared/config/config.js';
import type { ReadinessEntry } from '../../shared/health.js';

export type ReportedCli = Pick<ModelCli, 'name' | 'adapter' | 'health'>;

/** Data for the set-up report. */
export interface SetupSources<C extends ReportedCli = ReportedCli> {
  readonly config: Config;
  readonly host: Pick<Host, 'termination'>;
  readonly url: string;
  /** Fields with the URLs of the ports of features; null for a closed port. */
  readonly portUrls: Readonly<Record<string, string | null>>;
  /** Names of the API keys. */
  readonly keys: readonly string[];
  readonly clis: AtLeastOne<C>;
  readonly commandOf: (cli: C) => readonly string[];
  readonly models: ModelList;
  /** Files that a running service reads again. */
  readonly fileFaults?: Pick<FileFaults, 'files'>;
  readonly warnings: readonly string[];
}

/** Returns the fields with the URLs of the ports of features. */
export function portUrlsOf<P extends { readonly name: string }>(
  ports: readonly P[],
  urlOf: (port: P) => string | null | undefined,
): SetupSources['portUrls'] {
  return Object.fromEntries(ports.map((port) => [`${port.name}_url`, urlOf(port) ?? null]));
}

/** Returns the body of GET /setup, also for `check` without a running service. */
export function setupReportOf<C extends ReportedCli>({
  config,
  host,
  clis,
  commandOf,
  models,
  ...found
}: SetupSources<C>): SetupReport {
  const { containments, fault } = host.termination;
  const { files = [] } = found.fileFaults ?? {};
  const setupOf = (cli: C) => ({ command: commandOf(cli), ...foundBy(cli.health.checks.current) });
  return {
    url: found.url,
    socket: config.socketPath,
    ...found.portUrls,
    keys: found.keys,
    needs_key: config.needsKey,
    local_users: config.localUsers,
    allowed_users: config.allowedUsers,
    workers: config.workers,
    max_concurrent: config.maxConcurrent,
    max_queue: config.maxQueue,
    queue_timeout_ms: config.queueTimeoutMs,
    execution_timeout_ms: config.executionMs,
    ...firstAndAll(clis, setupOf),
    models: models.models.map(({ id, default: isDefault, alias_of: target }) => ({
      id,
      default: isDefault,
      ...(target !== undefined && { alias_of: target }),
    })),
    termination: { means: containments.means, no_cgroup: fault },
    store: { kind: config.store.kind, place: config.store.shown },
    ...(files.length > 0 && { files }),
    warnings: found.warnings,
  };
}

function foundBy({ adapter, version, status, durationMs, error }: ReadinessEntry) {
  const unknown = status === 'unknown' ? 'no readiness check has ended yet' : null;
  return { adapter, version, ready: status === 'ready', duration_ms: durationMs, error: error ?? unknown };
}
