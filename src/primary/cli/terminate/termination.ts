import type { Clock } from '../../../shared/clock.js';
import { ConfigFault } from '../../../shared/config/config.js';
import type { Instance } from '../../../shared/process/instance.js';
import { CgroupContainments } from './cgroup-containment.js';
import { type CgroupSetting, cgroupParent, openCgroupHome } from './cgroup-home.js';
import type { ContainmentFactory } from './containment.js';
import { GroupContainments } from './group-containment.js';
import { createKillTree, type KillTree } from './tree-kill.js';

/** What the host offers to end processes with. */
export interface HostTools {
  /** Path of a `setpriv` that ties a program's life to ours; null where there is none. */
  readonly setpriv: string | null;
  /** tree-kill asks `ps`. */
  readonly hasPs: boolean;
}

export interface TerminationSettings {
  readonly cgroup: CgroupSetting;
  /** Limits of each CLI process with everything it starts; null: none. */
  readonly maxMemoryBytes: number | null;
  readonly maxProcesses: number | null;
}

/** How processes of the model CLI are held together and ended on this host. */
export interface Termination {
  readonly containments: ContainmentFactory;
  readonly killTree: KillTree;
  readonly warnings: readonly string[];
  /** Why there are no cgroups; null where they are used, or switched off. */
  readonly fault: string | null;
}

const setprivWarning =
  'no setpriv on PATH that knows --pdeathsig (util-linux has one from 2.33 on): ' +
  'if the service is killed, what it leaves running may live on until the next start.';

/** Chooses the strongest means that works here. Rejects with a ConfigFault where a cgroup that was named can't be used. `mayMove`: see `openCgroupHome`. */
export async function chooseTermination(
  settings: TerminationSettings,
  tools: HostTools,
  instance: Instance,
  mayMove: boolean,
  clock: Clock,
): Promise<Termination> {
  const found = await openCgroupHome(await cgroupParent(settings.cgroup), instance, mayMove, clock);
  const killTree = createKillTree(tools.hasPs, clock);
  if (found.kind === 'usable') {
    const { maxMemoryBytes, maxProcesses } = settings;
    const [hasMemory, hasPids] = [found.controllers.has('memory'), found.controllers.has('pids')];
    const limits = { maxMemoryBytes: hasMemory ? maxMemoryBytes : null, maxProcesses: hasPids ? maxProcesses : null };
    const containments = new CgroupContainments(found.home, { hasMemory, ...limits }, clock);
    return { containments, killTree, warnings: unmetLimits(settings, hasMemory, hasPids), fault: null };
  }
  if (!['auto', 'off'].includes(settings.cgroup)) throw new ConfigFault([`MODEL_API_CGROUP: ${found.reason}`]);
  const warnings = [...unmetLimits(settings, false, false), ...(tools.setpriv === null ? [setprivWarning] : [])];
  const containments = new GroupContainments(instance, tools.setpriv, clock);
  return { containments, killTree, warnings, fault: settings.cgroup === 'off' ? null : found.reason };
}

function unmetLimits(
  { maxMemoryBytes, maxProcesses }: TerminationSettings,
  hasMemory: boolean,
  hasPids: boolean,
): string[] {
  const missing = [
    ...(maxMemoryBytes !== null && !hasMemory ? ['MODEL_API_CLI_MEMORY_MB'] : []),
    ...(maxProcesses !== null && !hasPids ? ['MODEL_API_CLI_PROCESSES'] : []),
  ];
  const why =
    'has no effect: the service has no cgroup with that controller (under systemd, Delegate=yes gives it one)';
  return missing.map((name) => `${name} ${why}`);
}
