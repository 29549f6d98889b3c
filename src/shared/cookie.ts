/** The variable that marks every process of a job's tree. Inherited over fork and exec, so a child can't shed it by moving. */
export const cookieName = 'PROMPT_RELAY_JOB';

/**
 * Names one run of the primary for as long as its processes may live: pid, its start in clock ticks, and its pid
 * namespace, because a pid means nothing in another one.
 */
export interface Instance {
  readonly pid: number;
  readonly startTicks: string;
  readonly pidNamespace: string;
}

const form = /^(\d+)\.(\d+)\.(\d+):(\d+)$/;

export function cookieOf(instance: Instance, serial: number): string {
  return `${instance.pid}.${instance.startTicks}.${instance.pidNamespace}:${serial}`;
}

export function instanceOf(cookie: string): Instance | null {
  const [, pid, startTicks, pidNamespace] = form.exec(cookie) ?? [];
  if (pid === undefined || startTicks === undefined || pidNamespace === undefined) return null;
  return { pid: Number(pid), startTicks, pidNamespace };
}
