import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findProgram } from '../cli/process/program.js';
import { tied } from '../cli/terminate/group-containment.js';
import type { HostTools } from '../cli/terminate/termination.js';

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
