import type { Clock } from '../../shared/clock.js';
import type { Config, Environment } from '../../shared/config/config.js';
import type { Logger } from '../../shared/log/logger.js';
import { endLeftovers, type TracePlaces } from '../../shared/process/leftovers.js';
import { cgroupParent } from '../cli/terminate/cgroup-home.js';
import { runtimeParent } from './runtime-directory.js';
import { clearStaleSocket } from './socket-path.js';

/** Ends what services that died have left behind, and clears what is in the way. */
export async function endPredecessors(config: Config, env: Environment, log: Logger, clock: Clock): Promise<void> {
  const reaped = await endLeftovers(clock, await tracesOf(config, env));
  if (reaped > 0) log.warn('orphans_reaped', { processes: reaped });
  if (config.socketPath !== null) await clearStaleSocket(config.socketPath);
}

/** Where a service of this configuration leaves traces. */
export async function tracesOf(config: Config, env: Environment): Promise<TracePlaces> {
  const parent = await cgroupParent(config.cgroup);
  return { runtimeParent: runtimeParent(env).path, cgroupParent: parent?.path ?? null };
}
