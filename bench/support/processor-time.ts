import { readFile } from 'node:fs/promises';
import { sum } from './statistics.js';

/** Ticks of /proc are a hundredth of a second on every Linux that Node runs on. */
const tickMs = 10;

/** Processor time that these processes, and those of their children that have exited, have used up, milliseconds. */
export async function processorMs(pids: readonly number[]): Promise<number> {
  return sum(await Promise.all(pids.map((pid) => processorMsOf(pid, allFields))));
}

/** The same without their children. */
export async function ownProcessorMs(pids: readonly number[]): Promise<number> {
  return sum(await Promise.all(pids.map((pid) => processorMsOf(pid, ownFields))));
}

/** Fields of /proc/<pid>/stat (proc(5)): 14 utime, 15 stime, 16 cutime, 17 cstime; counted from the third. */
const ownFields = [11, 13] as const;
const allFields = [11, 15] as const;

async function processorMsOf(pid: number, [from, to]: readonly [number, number]): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return sum(fields.slice(from, to).map(Number)) * tickMs;
}
