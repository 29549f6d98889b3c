import type { Config } from '../../shared/config/config.js';
import type { WorkerKeys, WorkerSettings } from '../../shared/ipc/protocol.js';
import { workerLogFd } from '../../shared/log/logger.js';
import type { Addresses } from '../workers/addresses.js';

/** First inherited descriptor of a listening address in a worker, after its standard streams, its channel and its log. */
const firstInheritedFd = workerLogFd + 1;

/**
 * Share of the drain time after which a client that reads nothing is disconnected, so that it neither prolongs the
 * drain nor causes jobs to be cut.
 */
const unreadShare = 1 / 3;
const minUnreadMs = 1000;

/** Returns the configuration for workers, without credentials of the CLI or keys in plain text. */
export function workerSettings(
  config: Config,
  keys: WorkerKeys,
  { fds: ownFds, ports }: Pick<Addresses, 'fds' | 'ports'>,
  { runtimePlaces, logStyle }: Pick<WorkerSettings, 'runtimePlaces' | 'logStyle'>,
  state: Pick<WorkerSettings, 'phase' | 'firstStartMs' | 'modelAbilities'>,
): WorkerSettings {
  const fds = ownFds.map((_, index) => firstInheritedFd + index);
  return {
    fds,
    portFds: Object.fromEntries(ports.map(({ name }, index) => [name, fds.at(index - ports.length) ?? -1])),
    bodyLimitBytes: config.bodyLimitBytes,
    allowedHosts: config.allowedHosts === null ? null : [...config.allowedHosts],
    trustedProxies: config.trustedProxies,
    ...keys,
    metricsAuth: config.metricsAuth,
    logLevel: config.logLevel,
    logStyle,
    isCapped: config.rateMaxRequests > 0,
    ...state,
    drainUnreadMs: Math.max(minUnreadMs, config.drainMs * unreadShare),
    runtimePlaces,
  };
}
