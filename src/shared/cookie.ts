import { type Instance, readInstance, writeInstance } from './instance.js';

/** The variable that marks every process of a job's tree. Inherited over fork and exec, so a child can't shed it by moving. */
export const cookieName = 'PROMPT_RELAY_JOB';

const form = /^([^:]+):\d+$/;

export function cookieOf(instance: Instance, serial: number): string {
  return `${writeInstance(instance)}:${serial}`;
}

export function instanceOf(cookie: string): Instance | null {
  return readInstance(form.exec(cookie)?.[1] ?? '');
}
