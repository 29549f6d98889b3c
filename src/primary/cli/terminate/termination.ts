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

/** Tools of the host for ending processes. */
export interface HostTools {
  /** Path of a `setpriv` that ties a program's life to this process; null if it is missing. */
  readonly setpriv: string | null;
  /** Whether `ps` exists, which tree-kill needs. */
  readonly hasPs: boolean;
}

/** Parent of the cgroups. `auto`: the cgroup of the service, if possible. Any other value is a path. */
export type CgroupSetting = 'auto' | 'off' | string;

export interface TerminationSettings {
  readonly cgroup: CgroupSetting;
  /** Memory of each CLI process with all its children; null if unlimited. */
  readonly maxMemoryBytes: number | null;
  /** Cgroups of a systemd unit that is only inspected. This process is outside of them and uses process groups. */
  readonly unitCgroups?: UnitCgroups | null;
}

/** Methods to contain and end CLI processes on this host. */
export interface Termination {
  readonly containments: ContainmentFactory;
  readonly killTree: KillTree;
  readonly warnings: readonly string[];
  /** Why cgroups are unavailable; null if they are in use or switched off. */
  readonly fault: string | null;
}

const setprivWarning =
  'no setpriv on PATH that knows --pdeathsig (util-linux has one from 2.33 on): ' +
  'if the service is killed, what it leaves running may live on until the next start.';

/** Returns the parent of the service's cgroups; null if cgroups are switched off, or if `auto` finds none. */
export async function cgroupParent(setting: CgroupSetting): Promise<Cgroup | null> {
  if (setting === 'off') return null;
  return setting === 'auto' ? ownCgroup() : new Cgroup(setting);
}

/** Returns the termination that the service of a unit will find; null if this process must test the host itself. */
function terminationOfUnit(
  settings: TerminationSettings,
  hasCgroups: boolean,
  groups: ContainmentFactory,
): Omit<Termination, 'killTree'> | null {
  const { cgroup, unitCgroups = null } = settings;
  if (unitCgroups === null || cgroup !== 'auto' || !hasCgroups) return null;
  const { fault, controllers } = unitCgroups;
  const warnings = unmetLimits(settings, controllers.has('memory'));
  const means = fault === null ? 'cgroup' : 'process-group';
  const create: ContainmentFactory['create'] = (...program) => groups.create(...program);
  return { containments: { means, create, close: () => groups.close() }, warnings, fault };
}

/**
 * Chooses the strongest method that works on this host. Rejects with a ConfigFault if a configured cgroup cannot be
 * used. `mayMove`: see `openCgroupHome`.
 */
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
  const unitTermination = terminationOfUnit(settings, parent !== null, groups);
  if (unitTermination !== null) return { ...unitTermination, killTree };
  const found = await openCgroupHome(parent, instance, mayMove, clock);
  if (found.kind === 'usable') {
    const [hasMemory, hasPids] = [found.controllers.has('memory'), found.controllers.has('pids')];
    const maxMemoryBytes = hasMemory ? settings.maxMemoryBytes : null;
    const fallback = { containments: groups, log };
    const containments = new CgroupContainments(found.home, { hasMemory, hasPids, maxMemoryBytes }, clock, fallback);
    const warnings = unmetLimits(settings, hasMemory);
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
  const warnings = [...unmetLimits(settings, false), ...(tools.setpriv === null ? [setprivWarning] : [])];
  return { containments: groups, killTree, warnings, fault: settings.cgroup === 'off' ? null : found.reason };
}

function unmetLimits({ maxMemoryBytes }: TerminationSettings, hasMemory: boolean): string[] {
  if (maxMemoryBytes === null || hasMemory) return [];
  return [
    'MODEL_API_CLI_MEMORY_MB has no effect: the service has no cgroup with that controller ' +
      '(under systemd, Delegate=yes gives it one)',
  ];
}

const limitMs = 200;
/** Time for which a process id listed by `ps` is valid: the kernel cannot reuse it sooner. */
const validMs = 1000;

/**
 * Signals a process and its descendants, children first. Resolves when that is done, or after a short time. Sends no
 * signal once `isOurs` returns false or a second has passed: a listed process may have ended, and its id may then
 * belong to a foreign process.
 */
export type KillTree = (pid: number, signal: 'SIGTERM', isOurs?: () => boolean) => Promise<void>;

/**
 * Creates a KillTree. tree-kill runs `ps` once for each process, so it suits only small trees. Without `ps`, it sends
 * no signals.
 */
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
 * Runs tree-kill so that its faults cannot end this process: if `ps` cannot be started or prints nothing, tree-kill
 * throws or leaves an `error` event without a listener. Listeners of its children are guarded too, and get no events
 * once `goesOn` returns false.
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
