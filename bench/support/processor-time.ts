import { readFile } from 'node:fs/promises';
import { sum } from './statistics.js';

/** Ticks of /proc are a hundredth of a second on every Linux that Node runs on. */
const tickMs = 10;

/** Processor time that these processes, and those of their children that have exited, have used up, milliseconds. */
export async function processorMs(pids: readonly number[]): Promise<number> {
  return sum(await Promise.all(pids.map(processorMsOf)));
}

/** Fields of /proc/<pid>/stat (proc(5)): 14 utime, 15 stime, 16 cutime, 17 cstime. */
async function processorMsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return sum(fields.slice(11, 15).map(Number)) * tickMs;
}
