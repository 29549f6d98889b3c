import type { Config } from '../../shared/config/config.js';
import type { WorkerSettings } from '../../shared/ipc/protocol.js';
import type { Phase } from '../../shared/phase.js';

/** A worker inherits the open addresses behind its standard streams and its channel. */
const firstInheritedFd = 4;

/** A client that takes nothing for this part of a drain shall not make it last to its end, nor end with work that is cut. */
const unreadShare = 1 / 3;
const minUnreadMs = 1000;

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
    drainUnreadMs: Math.max(minUnreadMs, config.drainMs * unreadShare),
    traces,
  };
}
