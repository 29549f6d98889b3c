import type { ChildProcess } from 'node:child_process';
import treeKill from 'tree-kill';
import { type Clock, delay } from '../../../shared/clock.js';
import { ConfigFault } from '../../../shared/config/config.js';
import type { Logger } from '../../../shared/log/logger.js';
import { closingFailed, watchingChildren } from '../../../shared/node-internals/spawned-children.js';
import { Cgroup, ownCgroup, type UnitCgroups } from '../../../shared/process/cgroup.js';
import type { Instance } from '../../../shared/process/proc.js';
import { CgroupContainments, openCgroupHome } from './cgroup-containment.js';
import type { ContainmentFactory } from './containment.js';
import { GroupContainments } from './group-containment.js';

/** What the host offers to end processes with. */
export interface HostTools {
  /** Path of a `setpriv` that ties a program's life to ours; else null. */
  readonly setpriv: string | null;
  /** tree-kill asks `ps`. */
  readonly hasPs: boolean;
}

/** `auto`: below the service's own cgroup, where that is possible. A path: below this one. */
export type CgroupSetting = 'auto' | 'off' | string;

export interface TerminationSettings {
  readonly cgroup: CgroupSetting;
  /** Limits of each CLI process with everything it starts; null: none. */
  readonly maxMemoryBytes: number | null;
  readonly maxProcesses: number | null;
  /** Those of a unit that is only looked at: this process is outside of them, and uses process groups. */
  readonly unitCgroups?: UnitCgroups | null;
}

/** How processes of the model CLI are contained and ended on this host. */
export interface Termination {
  readonly containments: ContainmentFactory;
  readonly killTree: KillTree;
  readonly warnings: readonly string[];
  /** Why there are no cgroups now; null where they are used, or switched off. */
  readonly fault: string | null;
}

const setprivWarning =
  'no setpriv on PATH that knows --pdeathsig (util-linux has one from 2.33 on): ' +
  'if the service is killed, what it leaves running may live on until the next start.';

/** The folder in which cgroups of prompt-relay are made; null if it does not exist, or if they are switched off. */
export async function cgroupParent(setting: CgroupSetting): Promise<Cgroup | null> {
  if (setting === 'off') return null;
  return setting === 'auto' ? ownCgroup() : new Cgroup(setting);
}

/** As the service of a unit will find it. Null where this process must find out by itself. */
function terminationOfUnit(
  settings: TerminationSettings,
  hasCgroups: boolean,
  groups: ContainmentFactory,
): Omit<Termination, 'killTree'> | null {
  const { cgroup, unitCgroups = null } = settings;
  if (unitCgroups === null || cgroup !== 'auto' || !hasCgroups) return null;
  const { fault, controllers } = unitCgroups;
  const warnings = unmetLimits(settings, controllers.has('memory'), controllers.has('pids'));
  const means = fault === null ? 'cgroup' : 'process-group';
  const create: ContainmentFactory['create'] = (...program) => groups.create(...program);
  return { containments: { means, create, close: () => groups.close() }, warnings, fault };
}

/** Chooses the strongest means that works here. Rejects with a ConfigFault where a cgroup that was named can't be used. `mayMove`: see `openCgroupHome`. */
export async function chooseTermination(
  settings: TerminationSettings,
  tools: HostTools,
  instance: Instance,
  mayMove: boolean,
  clock: Clock,
  log: Pick<Logger, 'warn'>,
): Promise<Termination> {
  const parent = await cgroupParent(settings.cgroup);
  const killTree = createKillTree(tools.hasPs, clock);
  const groups = new GroupContainments(instance, tools.setpriv, clock);
  const ofUnit = terminationOfUnit(settings, parent !== null, groups);
  if (ofUnit !== null) return { ...ofUnit, killTree };
  const found = await openCgroupHome(parent, instance, mayMove, clock);
  if (found.kind === 'usable') {
    const { maxMemoryBytes, maxProcesses } = settings;
    const [hasMemory, hasPids] = [found.controllers.has('memory'), found.controllers.has('pids')];
    const limits = { maxMemoryBytes: hasMemory ? maxMemoryBytes : null, maxProcesses: hasPids ? maxProcesses : null };
    const fallback = { containments: groups, log };
    const containments = new CgroupContainments(found.home, { hasMemory, ...limits }, clock, fallback);
    const warnings = unmetLimits(settings, hasMemory, hasPids);
    return {
      containments,
      killTree,
      warnings,
      get fault() {
        return containments.fault;
      },
    };
  }
  if (!['auto', 'off'].includes(settings.cgroup)) throw new ConfigFault([`MODEL_API_CGROUP: ${found.reason}`]);
  const warnings = [...unmetLimits(settings, false, false), ...(tools.setpriv === null ? [setprivWarning] : [])];
  return { containments: groups, killTree, warnings, fault: settings.cgroup === 'off' ? null : found.reason };
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

const limitMs = 200;
/** For so long the numbers that `ps` has listed surely mean the same processes: no machine forks so fast that they come round. */
const validMs = 1000;

/**
 * Signals a process and its descendants, children first. Resolves when that is done, or after a short time. Signals nothing
 * once `isOurs` says no, nor after a second: what `ps` has listed may have gone, and its numbers may be strangers' by then.
 */
export type KillTree = (pid: number, signal: 'SIGTERM', isOurs?: () => boolean) => Promise<void>;

/** tree-kill asks `ps` once for each process, so it is for small trees. Without `ps` nothing is signalled. */
export function createKillTree(hasPs: boolean, clock: Clock): KillTree {
  if (!hasPs) return async () => {};
  return async (pid, signal, isOurs = () => true) => {
    const until = clock.monotonicMs() + validMs;
    const goesOn = () => isOurs() && clock.monotonicMs() < until;
    const done = new Promise<void>((resolve) => {
      guarded(() => treeKill(pid, signal, () => resolve()), goesOn, resolve);
    });
    await Promise.race([done, delay(clock, limitMs)]);
  };
}

/**
 * tree-kill expects that `ps` can be started and says something: where not, it throws, or an `error` has no listener.
 * Either would end this process. What its listeners start is guarded in its turn, and they hear nothing once `goesOn` says no.
 */
function guarded(action: () => void, goesOn: () => boolean, onFault: () => void): void {
  const guard = (child: ChildProcess) => {
    const emit: (...event: [string, ...unknown[]]) => boolean = child.emit.bind(child);
    child.on('error', onFault);
    child.emit = (...event: [string, ...unknown[]]) => {
      if (goesOn()) guarded(() => emit(...event), goesOn, onFault);
      else onFault();
      return true;
    };
  };
  try {
    watchingChildren(() => closingFailed(action), guard);
  } catch {
    onFault();
  }
}
