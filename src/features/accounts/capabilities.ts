import { ConfigFault } from '../../shared/config/config.js';
import { readText } from '../../shared/process/proc.js';

/** Capabilities with which a program reaches beyond its fence, by their numbers. */
const unfenced: Readonly<Record<string, number>> = {
  CAP_DAC_READ_SEARCH: 2,
  CAP_SYS_MODULE: 16,
  CAP_SYS_RAWIO: 17,
  CAP_SYS_PTRACE: 19,
  CAP_SYS_ADMIN: 21,
  CAP_PERFMON: 38,
  CAP_BPF: 39,
};

/**
 * Returns the Linux capabilities with which a program can read logins of other accounts, of those that programs started
 * by a process get: the bounding set if the process runs as root, otherwise the ambient set. `status`: the text of
 * /proc/PID/status of the process.
 */
export function unfencedCapabilities(status: string, isRoot: boolean): string[] {
  const field = isRoot ? 'CapBnd' : 'CapAmb';
  const set = BigInt(`0x${new RegExp(`^${field}:\\s*([0-9a-f]+)$`, 'm').exec(status)?.[1] ?? '0'}`);
  return Object.entries(unfenced).flatMap(([name, bit]) => ((set >> BigInt(bit)) & 1n ? [name] : []));
}

/** Rejects with a ConfigFault if programs of accounts would have capabilities that weaken the fence around logins. */
export async function refuseCapabilities(): Promise<void> {
  const isRoot = process.getuid?.() === 0;
  const names = unfencedCapabilities(await readText('/proc/self/status'), isRoot);
  if (names.length === 0) return;
  const user = isRoot ? 'runs as root with' : 'passes on';
  throw new ConfigFault([
    `MODEL_API_ACCOUNTS_FILE: the service ${user} ${names.join(', ')}, so the processes of one account can reach the logins of others: ` +
      'start it as another user, without capabilities, or set MODEL_API_ACCOUNTS_AS_ROOT=true (docs/accounts.md)',
  ]);
}
