import type { ChildProcess } from 'node:child_process';
import treeKill from 'tree-kill';
import { withLimit } from '../../../shared/async.js';
import type { Clock } from '../../../shared/clock.js';
import type { Logger } from '../../../shared/log/logger.js';
import { closingFailed, watchingChildren } from '../../../shared/node-internals/spawned-children.js';
import type { UnitCgroups } from '../../../shared/process/cgroup.js';
import type { Instance } from '../../../shared/process/proc.js';
import type { ContainmentFactory } from './containment.js';
import { GroupContainments } from './group-containment.js';

/** Tools of the host for ending processes. */
export interface HostTools {
  /** Path of a `setpriv` that ties a program's life to this process; null if it is missing. */
  readonly setpriv: string | null;
  /** Whether `ps` exists, which tree-kill needs. */
  readonly hasPs: boolean;
}

/** Methods to contain and end CLI processes on this host. */
export interface Termination {
  readonly containments: ContainmentFactory;
  readonly killTree: KillTree;
  readonly warnings: readonly string[];
  /** Why the best containments are unavailable; null if they are in use or switched off. */
  readonly fault: string | null;
}

const setprivWarning =
  'no setpriv on PATH that knows --pdeathsig (util-linux has one from 2.33 on): ' +
  'if the service is killed, what it leaves running may live on until the next start.';

/** What the choice of containments may know of the host. */
export interface ContainmentHost {
  readonly instance: Instance;
  /** Cgroups of a systemd unit that is only inspected. This process is outside of them. */
  readonly unitCgroups: UnitCgroups | null;
  /** Whether this process is a service, which may move into another cgroup. */
  readonly isService: boolean;
  readonly clock: Clock;
  readonly log: Pick<Logger<string>, 'warn'>;
}

/**
 * Returns other containments than `groups`, which use process groups. Without `containments`, the process groups are
 * used. Rejects with a ConfigFault if configured containments cannot be used.
 */
export type ChooseContainments = (
  groups: ContainmentFactory,
  host: ContainmentHost,
) => Promise<Pick<Termination, 'warnings' | 'fault'> & { readonly containments?: ContainmentFactory }>;

const noOthers: ChooseContainments = async () => ({ warnings: [], fault: null });

/** Chooses the methods for this host. `choose` belongs to a feature; null without one. */
export async function chooseTermination(
  tools: HostTools,
  host: ContainmentHost,
  choose: ChooseContainments | null,
): Promise<Termination> {
  const groups = new GroupContainments(host.instance, tools.setpriv, host.clock);
  const chosen = await (choose ?? noOthers)(groups, host);
  const isUntied = chosen.containments === undefined && tools.setpriv === null;
  return {
    containments: chosen.containments ?? groups,
    killTree: createKillTree(tools.hasPs, host.clock),
    warnings: [...chosen.warnings, ...(isUntied ? [setprivWarning] : [])],
    get fault() {
      return chosen.fault;
    },
  };
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
    await withLimit(done, limitMs, clock);
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
