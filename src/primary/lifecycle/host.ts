import { execFile } from 'node:child_process';
import { freemem } from 'node:os';
import { promisify } from 'node:util';
import type { LogStyle } from '../../shared/log/text.js';
import type { ServiceExit } from '../../shared/phase.js';
import type { Cgroup } from '../../shared/process/cgroup.js';
import type { RuntimePlaces } from '../../shared/process/leftovers.js';
import type { CliHost } from '../cli/model-cli.js';
import { findProgram } from '../cli/process/program.js';
import { tied } from '../cli/terminate/group-containment.js';
import type { HostTools } from '../cli/terminate/termination.js';
import type { Defects } from './defects.js';
import type { Systemd } from './systemd.js';

/** Environment of the service: process, operating system and systemd. */
export interface Host extends CliHost {
  readonly product: { readonly version: string; readonly commit: string | null };
  readonly systemd: Systemd;
  /** Locations of runtime files and cgroups, which remain if the service is killed. */
  readonly runtimePlaces: RuntimePlaces;
  /** Exceptions that no code has caught. */
  readonly defects: Defects;
  /** Style of the log of the primary and its workers. */
  readonly logStyle: LogStyle;
  /** Writes lines between the records of a human-readable log; has no effect in other log styles. */
  show(lines: readonly string[]): void;
  /** Called at each piece of work, to return memory to the system during the next quiet time. */
  readonly heap: { touch(): void };
  /** Returns the number of log records of the primary that could not be written. */
  logWriteErrors(): number;
  /** Returns the memory that is available without swapping, in bytes. */
  freeMemory(): number;
  /** Returns a number from 0 to 1. */
  random(): number;
  exit(code: ServiceExit): void;
}

/**
 * Returns the memory of the host that is available without swapping, in bytes. A container or a systemd unit may limit
 * it.
 */
export function freeMemoryIn(cgroup: Cgroup | null): number {
  const free = cgroup?.freeMemory ?? Number.POSITIVE_INFINITY;
  // Node knows the limits of cgroup v1, but with v2 only limits of the innermost cgroup.
  return Math.min(freemem(), free === Number.POSITIVE_INFINITY ? process.availableMemory() : free);
}

const trialLimitMs = 5000;

export async function findHostTools(searchPath: string): Promise<HostTools> {
  const [setpriv, ps] = await Promise.all([findProgram('setpriv', searchPath), findProgram('ps', searchPath)]);
  const isSound = setpriv.kind === 'found' && (await endsWell(...tied(setpriv.path, setpriv.path, ['--version'])));
  return { setpriv: isSound ? setpriv.path : null, hasPs: ps.kind === 'found' };
}

/**
 * Whether the program exits with 0. Only a trial shows this, because busybox and older hosts have a setpriv without
 * `--pdeathsig`.
 */
export async function endsWell(program: string, args: readonly string[]): Promise<boolean> {
  const limits = { timeout: trialLimitMs, killSignal: 'SIGKILL' } as const;
  try {
    await promisify(execFile)(program, args, { env: {}, ...limits });
    return true;
  } catch {
    return false;
  }
}

/** Returns the path of `systemd-notify`; null if it is not installed. */
export async function findNotifier(searchPath: string): Promise<string | null> {
  const notifier = await findProgram('systemd-notify', searchPath);
  return notifier.kind === 'found' ? notifier.path : null;
}
