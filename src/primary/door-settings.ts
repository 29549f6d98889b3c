import type { Config } from '../shared/config/config.js';
import type { DoorSettings } from '../shared/ipc/protocol.js';
import type { Phase } from '../shared/phase.js';

/** The part of the configuration that workers need: no credential of the CLI, no key in clear. */
export function doorSettings(config: Config, port: number, phase: Phase): DoorSettings {
  return {
    host: config.host,
    port,
    socketPath: config.socketPath,
    bodyLimitBytes: config.bodyLimitBytes,
    allowedHosts: config.allowedHosts === null ? null : [...config.allowedHosts],
    allowedOrigins: config.allowedOrigins,
    trustedProxies: config.trustedProxies,
    keys: [...config.apiKeys],
    logLevel: config.logLevel,
    rateLimit: config.rateMaxRequests === 0 ? null : rateLimitOf(config),
    phase,
  };
}

function rateLimitOf({ rateMaxRequests, rateWindowMs }: Config) {
  return { maxRequests: rateMaxRequests, windowSeconds: rateWindowMs / 1000 };
}
