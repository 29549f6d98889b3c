import { readFile } from 'node:fs/promises';
import { sum } from './statistics.js';

/** Length of a tick in /proc: a hundredth of a second on every Linux that Node supports. */
const tickMs = 10;

/** Returns the processor time of these processes and of their exited children, in milliseconds. */
export async function processorMs(pids: readonly number[]): Promise<number> {
  return sum(await Promise.all(pids.map((pid) => processorMsOf(pid, allFields))));
}

/** Returns the processor time of these processes without their children, in milliseconds. */
export async function ownProcessorMs(pids: readonly number[]): Promise<number> {
  return sum(await Promise.all(pids.map((pid) => processorMsOf(pid, ownFields))));
}

/** Fields of /proc/<pid>/stat (proc(5)): 14 utime, 15 stime, 16 cutime, 17 cstime; indices start at the third field. */
const ownFields = [11, 13] as const;
const allFields = [11, 15] as const;

async function processorMsOf(pid: number, [from, to]: readonly [number, number]): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return sum(fields.slice(from, to).map(Number)) * tickMs;
}
