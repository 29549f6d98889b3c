/**
 * Names one run of the primary for as long as its processes may live: its pid, its start in clock ticks, and its pid
 * namespace, because a pid means nothing in another one.
 */
export interface Instance {
  readonly pid: number;
  readonly startTicks: string;
  readonly pidNamespace: string;
}

const instanceForm = /^(\d+)\.(\d+)\.(\d+)$/;

export function writeInstance({ pid, startTicks, pidNamespace }: Instance): string {
  return `${pid}.${startTicks}.${pidNamespace}`;
}

export function readInstance(text: string): Instance | null {
  const [, pid, startTicks, pidNamespace] = instanceForm.exec(text) ?? [];
  if (pid === undefined || startTicks === undefined || pidNamespace === undefined) return null;
  return { pid: Number(pid), startTicks, pidNamespace };
}

/** The variable that marks every process of a tree. A child inherits it over fork and exec. */
export const cookieName = 'PROMPT_RELAY_JOB';

const cookieForm = /^([^:]+):\d+$/;

export function cookieOf(instance: Instance, serial: number): string {
  return `${writeInstance(instance)}:${serial}`;
}

/** The instance that a cookie belongs to; null for what is no cookie of ours. */
export function instanceOf(cookie: string): Instance | null {
  return readInstance(cookieForm.exec(cookie)?.[1] ?? '');
}

const folderForm = /^prompt-relay-([\d.]+?)(?:-[A-Za-z0-9]{6})?$/;

/** How the name of every folder that an instance makes begins: its runtime directory, its cgroup. */
export function folderPrefix(owner: Instance): string {
  return `prompt-relay-${writeInstance(owner)}`;
}

/** The instance that made a folder of this name; null for any other folder. */
export function ownerOfFolder(name: string): Instance | null {
  return readInstance(folderForm.exec(name)?.[1] ?? '');
}
