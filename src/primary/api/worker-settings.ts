import type { Config } from '../../shared/config/config.js';
import type { WorkerSettings } from '../../shared/ipc/protocol.js';
import type { Phase } from '../../shared/phase.js';

/** A worker inherits the open addresses behind its standard streams and its channel. */
const firstInheritedFd = 4;

/** The part of the configuration that workers need: no credential of the CLI, no key in clear text. */
export function workerSettings(
  config: Config,
  keys: WorkerSettings['keys'],
  addressCount: number,
  { traces, logStyle }: Pick<WorkerSettings, 'traces' | 'logStyle'>,
  phase: Phase,
): WorkerSettings {
  return {
    fds: Array.from({ length: addressCount }, (_, index) => firstInheritedFd + index),
    bodyLimitBytes: config.bodyLimitBytes,
    allowedHosts: config.allowedHosts === null ? null : [...config.allowedHosts],
    allowedOrigins: config.allowedOrigins,
    trustedProxies: config.trustedProxies,
    keys,
    localUsers: config.localUsers,
    allowedUsers: config.allowedUsers,
    metricsAuth: config.metricsAuth,
    hasConsole: config.console === 'on',
    readBack: config.readBack,
    logLevel: config.logLevel,
    logStyle,
    isCapped: config.rateMaxRequests > 0,
    phase,
    traces,
  };
}
