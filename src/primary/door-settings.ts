import type { Config } from '../shared/config/config.js';
import type { DoorSettings } from '../shared/ipc/protocol.js';
import type { Phase } from '../shared/phase.js';

/** A worker inherits what was passed to us behind its standard streams and its channel. */
const firstInheritedFd = 4;

/** The part of the configuration that workers need: no credential of the CLI, no key in clear. */
export function doorSettings(config: Config, port: number, passedCount: number, phase: Phase): DoorSettings {
  return {
    host: config.host,
    port,
    socketPath: config.socketPath,
    passedFds: Array.from({ length: passedCount }, (_, index) => firstInheritedFd + index),
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
