import type { SetupReport } from '../../shared/api/setup.js';

/** Whether requests need a key, and whether anybody has one. */
export function accessText({ keys, needs_key: needsKey }: Pick<SetupReport, 'keys' | 'needs_key'>): string {
  if (!needsKey) return 'none: requests need no key';
  if (keys.length === 0) return 'none in the keys file: nobody is let in';
  return keys.length === 1 ? 'one, and each request needs it' : `${keys.length}, and each request needs one of them`;
}

const modes: ReadonlyMap<string, string> = new Map([
  ['off', 'not told apart'],
  ['identify', 'told apart by their user'],
  ['require', 'told apart by their user; who has no name is refused'],
]);

/** How callers of this machine are known, without a key. */
export function localUsersText(mode: string): string {
  return modes.get(mode) ?? mode;
}

export function storeText({ kind, place }: SetupReport['store']): string {
  return place === null ? `in ${kind}: a restart forgets them` : `in ${kind}: ${place}`;
}

export function terminationText({ means, no_cgroup: reason }: SetupReport['termination']): string {
  if (means === 'cgroup') return 'a cgroup for each job';
  return `a group of processes for each job${reason === null ? '' : `; no cgroups: ${reason}`}`;
}
