import { execFile } from 'node:child_process';
import { freemem } from 'node:os';
import { promisify } from 'node:util';
import type { LogStyle } from '../../shared/log/text.js';
import type { ServiceExit } from '../../shared/phase.js';
import type { Cgroup } from '../../shared/process/cgroup.js';
import type { TracePlaces } from '../../shared/process/leftovers.js';
import type { CliHost } from '../cli/model-cli.js';
import { findProgram } from '../cli/process/program.js';
import { tied } from '../cli/terminate/group-containment.js';
import type { HostTools } from '../cli/terminate/termination.js';
import type { Defects } from './defects.js';
import type { Systemd } from './systemd.js';

/** What the service is given of the world outside. */
export interface Host extends CliHost {
  readonly product: { readonly version: string; readonly commit: string | null };
  readonly systemd: Systemd;
  /** Where the service leaves traces, should it be killed. */
  readonly traces: TracePlaces;
  /** The exceptions that nothing has caught. */
  readonly defects: Defects;
  /** How the log is written, here and by the workers. */
  readonly logStyle: LogStyle;
  /** Writes lines between those of a log for people; elsewhere nothing. */
  show(lines: readonly string[]): void;
  /** Called for each piece of work. Gives memory back to the system in the next quiet. */
  readonly heap: { touch(): void };
  /** Log records of the primary that could not be written. */
  logWriteErrors(): number;
  /** Memory that can be had without swapping, bytes. */
  freeMemory(): number;
  /** Numbers from 0 to 1. */
  random(): number;
  exit(code: ServiceExit): void;
}

/** Memory that can be had without swapping: of the host, but no more than the container or the unit may use, bytes. */
export function freeMemoryIn(cgroup: Cgroup | null): number {
  const free = cgroup?.freeMemory ?? Number.POSITIVE_INFINITY;
  // Node knows limits of cgroup v1, but of v2 only those of the cgroup itself.
  return Math.min(freemem(), free === Number.POSITIVE_INFINITY ? process.availableMemory() : free);
}

const trialLimitMs = 5000;

export async function findHostTools(searchPath: string): Promise<HostTools> {
  const [setpriv, ps] = await Promise.all([findProgram('setpriv', searchPath), findProgram('ps', searchPath)]);
  const isSound = setpriv.kind === 'found' && (await endsWell(...tied(setpriv.path, setpriv.path, ['--version'])));
  return { setpriv: isSound ? setpriv.path : null, hasPs: ps.kind === 'found' };
}

/** Tries it out: busybox and older hosts have a setpriv without `--pdeathsig`. */
async function endsWell(program: string, args: readonly string[]): Promise<boolean> {
  const limits = { timeout: trialLimitMs, killSignal: 'SIGKILL' } as const;
  try {
    await promisify(execFile)(program, args, { env: {}, ...limits });
    return true;
  } catch {
    return false;
  }
}

/** Path of `systemd-notify`; null where it is not installed. */
export async function findNotifier(searchPath: string): Promise<string | null> {
  const notifier = await findProgram('systemd-notify', searchPath);
  return notifier.kind === 'found' ? notifier.path : null;
}
