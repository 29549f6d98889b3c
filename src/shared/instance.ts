/**
 * Names one run of the primary for as long as its processes may live: pid, its start in clock ticks, and its pid
 * namespace, because a pid means nothing in another one.
 */
export interface Instance {
  readonly pid: number;
  readonly startTicks: string;
  readonly pidNamespace: string;
}

const form = /^(\d+)\.(\d+)\.(\d+)$/;

export function writeInstance({ pid, startTicks, pidNamespace }: Instance): string {
  return `${pid}.${startTicks}.${pidNamespace}`;
}

export function readInstance(text: string): Instance | null {
  const [, pid, startTicks, pidNamespace] = form.exec(text) ?? [];
  if (pid === undefined || startTicks === undefined || pidNamespace === undefined) return null;
  return { pid: Number(pid), startTicks, pidNamespace };
}
